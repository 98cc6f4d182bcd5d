// fuse_layer_norm, fuse_rms_norm and fuse_softmax: spellings, and what stays and why.
#include <doctest/doctest.h>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

const Fusion kLayerNorm = fusion_on_rows("fuse_layer_norm", "LayerNormalization");
const Fusion kRmsNorm = fusion_on_rows("fuse_rms_norm", "RMSNormalization");
const Fusion kSoftmax = fusion_on_rows("fuse_softmax", "Softmax");

std::string fused_lines(const Fusion& fusion, std::string_view nodes) {
  return node_lines(stage_named(stages_of(fusion, nodes), fusion.pass).graph);
}

}  // namespace

TEST_CASE("fuse_layer_norm: spellings with scale and bias, one of them, or neither") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter before opset 17",
       "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Pow(d, two)"
       "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  n = Div(d, r)"
       "  a = Mul(n, w)  y = Add(a, b)",
       9},
      {"by the inverse of the root, as PyTorch's dynamo exporter writes it",
       "m = ReduceMean <axes = [2]> (x)  d = Sub(x, m)  s = Mul(d, d)"
       "  v = ReduceMean <axes = [2]> (s)  e = Add(eps, v)  r = Sqrt(e)  i = Reciprocal(r)"
       "  n = Mul(d, i)  a = Mul(w, n)  y = Add(b, a)",
       10},
      {"by 1 / root, without a bias, and an exponent of integers",
       "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Pow(d, square)"
       "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  i = Div(one, r)"
       "  n = Mul(i, d)  y = Mul(n, row)",
       9},
      {"by a power, without scale and bias",
       "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Mul(d, d)"
       "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  i = Pow(e, minus)  n = Mul(d, i)"
       "  y = Neg(n)",
       7},
      {"casts around that change nothing",
       "c = Cast <to = 1> (x)  m = ReduceMean <axes = [-1]> (c)  d = Sub(c, m)  s = Mul(d, d)"
       "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Pow(e, half)  n = Div(d, r)"
       "  f = Cast <to = 1> (n)  a = Mul(f, w)  y = Add(a, b)",
       9},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kLayerNorm, spelling);
  CHECK(contains(fused_lines(kLayerNorm, kSpellings[0].nodes),
                 "y f32[2,3,5] = LayerNormalization(x, w, b) axis=-1 epsilon=0.0009765625"));
}

TEST_CASE("fuse_layer_norm: the deviation computed twice") {
  CompileOptions options;
  options.import.frozen = kLayerNorm.constants;
  options.training.mode = GraphMode::kInference;
  options.passes.disabled = {"common_subexpression"};
  const Stages twice =
      stages(text_of(kLayerNorm,
                     "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)"
                     "  o = ReduceMean <axes = [-1]> (x)  f = Sub(x, o)  s = Mul(f, f)"
                     "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)"
                     "  n = Div(d, r)  y = Mul(n, w)"),
             options);
  CHECK(count_ops(twice.back().graph, "LayerNormalization") == 1);
  CHECK(twice.back().nodes == 2);
}

TEST_CASE("fuse_layer_norm: several axes at the end") {
  const Fusion planes{.pass = "fuse_layer_norm",
                      .fused = "LayerNormalization",
                      .inputs =
                          "(float[4,2,3] x0) => (float[4,2,3] y) <float[3] p = {1,-2,3},"
                          " float[2,3] w = {1,2,3,4,5,6}, float eps = {0.1}>",
                      .before = "x = Mul(x0, p)",
                      .constants = {"eps"}};
  check_spelling(planes, {"two axes",
                          "m = ReduceMean <axes = [1, 2]> (x)  d = Sub(x, m)  s = Mul(d, d)"
                          "  v = ReduceMean <axes = [2, 1]> (s)  e = Add(v, eps)  r = Sqrt(e)"
                          "  n = Div(d, r)  y = Mul(n, w)",
                          8});
}

TEST_CASE("fuse_rms_norm: spellings with and without a scale") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter",
       "s = Pow(x, two)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)"
       "  i = Div(one, r)  n = Mul(x, i)  y = Mul(w, n)",
       7},
      {"PyTorch's dynamo exporter",
       "s = Pow(x, square)  v = ReduceMean <axes = [2]> (s)  e = Add(v, eps)  r = Sqrt(e)"
       "  i = Reciprocal(r)  n = Mul(x, i)  y = Mul(n, w)",
       7},
      {"our builders",
       "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)"
       "  n = Div(x, r)  y = Mul(n, w)",
       6},
      {"without a scale, of an expression",
       "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  i = Pow(e, minus)"
       "  n = Mul(i, x)  y = Exp(n)",
       5},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kRmsNorm, spelling);
  CHECK(contains(fused_lines(kRmsNorm, kSpellings[0].nodes),
                 "y f32[2,3,5] = ts.RMSNormalization(x, w) axis=-1 epsilon=0.0009765625"));
}

TEST_CASE("fuse_layer_norm, fuse_rms_norm: near misses say what is in the way") {
  const std::string head = "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  ";
  const auto misses = [&](std::string_view nodes) {
    return near_misses_of(kRmsNorm, head + std::string(nodes));
  };
  CHECK(misses("e = Add(v, eps)  r = Sqrt(e)  n = Div(x, r)  y = Add(n, v)") ==
        "'v' has 2 readers");
  CHECK(misses("e = Add(v, eps)  r = Sqrt(e)  o = Exp(x)  y = Div(o, r)") ==
        "what is divided, 'o', is not what was squared");
  CHECK(misses("e = Add(v, negative)  r = Sqrt(e)  y = Div(x, r)") ==
        "epsilon is -0.10000000149011612");
  CHECK(misses("e = Add(v, eps)  y = Div(x, e)").find("does not belong to a norm") !=
        std::string::npos);
  CHECK(near_misses_of(kLayerNorm,
                       "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Mul(d, d)"
                       "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)"
                       "  r = Sqrt(e)  y = Div(x, r)") ==
        "what is divided, 'x', is not what was squared");
}

TEST_CASE("fuse_rms_norm: near misses name numbers that are trained") {
  const auto misses = [](std::string_view trained) {
    Fusion fusion = kRmsNorm;
    std::erase(fusion.constants, trained);
    fusion.trained = {std::string(trained)};
    return near_misses_of(fusion,
                          "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)"
                          "  i = Pow(e, minus)  y = Mul(x, i)");
  };
  for (const std::string number : {"eps", "minus"}) {
    CHECK(misses(number) ==
          "'" + number + "' is trained, a constant is expected: freeze it (--freeze)");
  }
}

TEST_CASE("fuse_layer_norm, fuse_rms_norm: means over other axes stay") {
  for (const std::string_view nodes :
       {"s = Mul(x, x)  v = ReduceMean <axes = [1]> (s)  e = Add(v, eps)  r = Sqrt(e)"
        "  y = Div(x, r)",
        "y = Mul(x, x)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(kRmsNorm, nodes).empty());
    CHECK(near_misses_of(kLayerNorm, nodes).empty());
  }
  // A scale that is no vector of the normalised elements stays outside.
  CHECK(contains(fused_lines(kRmsNorm,
                             "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)"
                             "  r = Sqrt(e)  n = Div(x, r)  y = Mul(n, two)"),
                 "y f32[2,3,5] = Mul(RMSNormalization, two)"));
}

TEST_CASE("fuse_layer_norm, fuse_rms_norm: numbers that add axes stay outside") {
  Fusion raised{
      .pass = "fuse_rms_norm",
      .fused = "RMSNormalization",
      .inputs =
          "(float[2,3,5] x0) => (float[1,2,3,5] y) <float[5] p = {0.5,-1,1.5,2,-2.5},"
          " float[1,1,1,1] eps4 = {0.1}, float[1,1,1,1] half4 = {0.5}, float eps = {0.1}>",
      .before = "x = Mul(x0, p)  s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)",
      .constants = {"eps4", "half4", "eps"}};
  CHECK(near_misses_of(raised, "e = Add(v, eps4)  r = Sqrt(e)  y = Div(x, r)") ==
        "Add 'Add_3' does not belong to a norm");
  CHECK(near_misses_of(raised, "e = Add(v, eps)  r = Pow(e, half4)  y = Div(x, r)") ==
        "Pow 'Pow_4' does not belong to a norm");
}

TEST_CASE("fuse_layer_norm, fuse_rms_norm: a value inside that is needed keeps the nodes") {
  constexpr std::string_view kSpelled =
      "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Mul(d, d)"
      "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  n = Div(d, r)  ";
  const std::string norm = std::string(kSpelled) + "y = Neg(n)";
  for (const std::string value : {"m", "d", "s", "v", "r"}) {
    CHECK(near_misses_with_gradient_of(value, kLayerNorm, norm) ==
          "the gradient of '" + value + "' is asked for");
  }
  const auto misses = [&](std::string_view end) {
    return near_misses_of(kLayerNorm, std::string(kSpelled) + std::string(end));
  };
  CHECK(misses("y = Add(n, m)") == "'m' has 2 readers");
  CHECK(misses("y = Add(n, d)") == "'d' has 4 readers");
  CHECK(misses("y = Add(n, s)") == "'s' has 2 readers");
  CHECK(near_misses_with_gradient_of("s", kRmsNorm,
                                     "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)"
                                     "  e = Add(v, eps)  r = Sqrt(e)  y = Div(x, r)") ==
        "the gradient of 's' is asked for");
}

TEST_CASE("fuse_softmax: spellings along an axis") {
  constexpr Spelling kSpellings[] = {
      {"with the largest subtracted",
       "m = ReduceMax <axes = [-1]> (x)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum(e, last)"
       "  y = Div(e, s)",
       5},
      {"by the inverse of the sum",
       "m = ReduceMax <axes = [2]> (x)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum(e, last)"
       "  i = Reciprocal(s)  y = Mul(i, e)",
       6},
      {"as it is defined", "e = Exp(x)  s = ReduceSum(e, last)  y = Div(e, s)", 3},
      {"of an expression",
       "z = Tanh(x)  m = ReduceMax <axes = [-1]> (z)  d = Sub(z, m)  e = Exp(d)"
       "  s = ReduceSum(e, last)  q = Div(e, s)  y = Neg(q)",
       5},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kSoftmax, spelling);
  CHECK(contains(fused_lines(kSoftmax, kSpellings[0].nodes), "y f32[2,3,5] = Softmax(x) axis=2"));
}

TEST_CASE("fuse_softmax: what stays, and why") {
  CHECK(near_misses_of(kSoftmax,
                       "e = Exp(x)  s = ReduceSum(e, last)  q = Div(e, s)"
                       "  y = Add(q, e)") == "'e' has 3 readers");
  constexpr std::string_view kInverse =
      "e = Exp(x)  s = ReduceSum(e, last)  i = Reciprocal(s)  q = Mul(e, i)  ";
  for (const std::string value : {"e", "s", "i"}) {
    CHECK(near_misses_with_gradient_of(value, kSoftmax, std::string(kInverse) + "y = Neg(q)") ==
          "the gradient of '" + value + "' is asked for");
  }
  CHECK(near_misses_of(kSoftmax, std::string(kInverse) + "l = Log(s)  y = Add(q, l)") ==
        "'s' has 2 readers");
  for (const std::string_view nodes :
       {"e = Exp(x)  f = Exp(x0)  s = ReduceSum(f, last)  y = Div(e, s)",
        "e = Tanh(x)  s = ReduceSum(e, last)  y = Div(e, s)",
        "e = Exp(x)  s = ReduceSum(e)  y = Div(e, s)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(kSoftmax, nodes).empty());
  }
  // A softmax of the difference is one too.
  for (const std::string value : {"m", "d"}) {
    CompileOptions options = options_of(kSoftmax);
    options.training.gradient_of = {value};
    const Stages asked = stages(text_of(kSoftmax,
                                        "m = ReduceMax <axes = [2]> (x)  d = Sub(x, m)  e = Exp(d)"
                                        "  s = ReduceSum(e, last)  y = Div(e, s)"),
                                options);
    CHECK(contains(node_lines(stage_named(asked, "fuse_softmax").graph),
                   "y f32[2,3,5] = Softmax(d)"));
    CHECK(asked.back().graph.gradients.size() == 2);
  }
  // Another maximum than the row's own is not subtracted by a softmax: it stays before it.
  CHECK(contains(fused_lines(kSoftmax,
                             "m = ReduceMax <axes = [1]> (x)  d = Sub(x, m)  e = Exp(d)"
                             "  s = ReduceSum(e, last)  y = Div(e, s)"),
                 "y f32[2,3,5] = Softmax(d) axis=2"));
}

}  // namespace trainscope::test
