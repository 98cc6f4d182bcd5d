// fuse_gelu and fuse_silu: the spellings that they find, and what they leave alone and why.
#include <doctest/doctest.h>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

const Fusion kGelu = fusion_on_rows("fuse_gelu", "Gelu");
const Fusion kQuick = fusion_on_rows("fuse_gelu", "Swish");
const Fusion kSilu = fusion_on_rows("fuse_silu", "Swish");

std::string fused_line(const Fusion& fusion, std::string_view nodes) {
  return node_lines(stage_named(stages_of(fusion, nodes), fusion.pass).graph);
}

}  // namespace

TEST_CASE("fuse_gelu: by erf, in the orders that exporters write") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter, and our builders",
       "d = Div(x, root)  e = Erf(d)  s = Add(e, one)  q = Mul(x, s)  y = Mul(q, half)", 5},
      {"PyTorch's dynamo exporter",
       "d = Div(x, root)  e = Erf(d)  s = Add(e, one)  h = Mul(half, x)  y = Mul(h, s)", 5},
      {"ONNX's own function, with the inverse root",
       "d = Mul(inverse, x)  e = Erf(d)  s = Add(one, e)  g = Mul(s, half)  y = Mul(x, g)", 5},
      {"the half on either operand",
       "d = Mul(x, inverse)  e = Erf(d)  g = Mul(e, half)  s = Add(half, g)  y = Mul(s, x)", 5},
      {"halved by a division",
       "d = Div(x, root)  e = Erf(d)  s = Add(e, one)  q = Mul(s, x)"
       "  y = Div(q, two)",
       5},
      {"as a sum",
       "d = Div(x, root)  e = Erf(d)  h = Mul(half, x)  g = Mul(h, e)  i = Mul(x, half)"
       "  y = Add(i, g)",
       6},
      {"constants as nodes",
       "r = Constant <value_float = 1.4142135> ()  i = Constant <value_float = 1.0> ()"
       "  o = Constant <value_float = 0.5> ()  d = Div(x, r)  e = Erf(d)  s = Add(e, i)"
       "  q = Mul(x, s)  y = Mul(q, o)",
       5},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kGelu, spelling);
  CHECK(contains(fused_line(kGelu, kSpellings[0].nodes),
                 "y f32[2,3,5] = ts.Gelu(x) approximate='none'"));
}

TEST_CASE("fuse_gelu: by tanh, with any form of its polynomial") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter, and our builders",
       "h = Mul(x, half)  c = Pow(x, three)  m = Mul(c, cubic)  i = Add(x, m)  u = Mul(i, slope)"
       "  t = Tanh(u)  s = Add(t, one)  y = Mul(h, s)",
       8},
      {"PyTorch's dynamo exporter",
       "c = Pow(x, three)  m = Mul(cubic, c)  i = Add(x, m)  u = Mul(slope, i)  t = Tanh(u)"
       "  s = Add(one, t)  g = Mul(half, s)  y = Mul(x, g)",
       8},
      {"the cube as products",
       "a = Mul(x, x)  c = Mul(a, x)  m = Mul(c, cubic)  i = Add(m, x)  u = Mul(i, slope)"
       "  t = Tanh(u)  s = Add(t, one)  q = Mul(x, s)  y = Mul(q, half)",
       9},
      {"Hugging Face's gelu_fast: x factored out",
       "f = Mul(x, slope)  a = Mul(x, cubic)  c = Mul(a, x)  i = Add(c, one)  u = Mul(f, i)"
       "  t = Tanh(u)  s = Add(t, one)  h = Mul(x, half)  y = Mul(h, s)",
       9},
      {"multiplied out",
       "f = Mul(x, slope)  c = Pow(x, three)  m = Mul(c, slope)  n = Mul(m, cubic)  u = Add(f, n)"
       "  t = Tanh(u)  s = Add(t, one)  h = Mul(x, half)  y = Mul(h, s)",
       9},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kGelu, spelling);
  CHECK(contains(fused_line(kGelu, kSpellings[0].nodes),
                 "y f32[2,3,5] = ts.Gelu(x) approximate='tanh'"));
}

TEST_CASE("fuse_gelu: the quick form") {
  constexpr Spelling kSpellings[] = {
      {"Hugging Face's", "u = Mul(x, quick)  g = Sigmoid(u)  y = Mul(x, g)", 3},
      {"the other way round", "u = Mul(quick, x)  g = Sigmoid(u)  y = Mul(g, x)", 3},
      {"subtracted twice",
       "n = Neg(x)  u = Mul(n, quick)  v = Neg(u)  g = Sigmoid(v)"
       "  y = Mul(g, x)",
       5},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kQuick, spelling);
  CHECK(
      contains(fused_line(kQuick, kSpellings[0].nodes), "y f32[2,3,5] = ts.Swish(x) alpha=1.702"));
}

TEST_CASE("fuse_silu: x times its sigmoid") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's exporters", "g = Sigmoid(x)  y = Mul(x, g)", 2},
      {"the other way round", "g = Sigmoid(x)  y = Mul(g, x)", 2},
      {"in an expression", "g = Sigmoid(x)  s = Mul(g, x)  n = Neg(s)  y = Exp(n)", 2},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(kSilu, spelling);
  // A factor that follows stays outside.
  CHECK(contains(fused_line(kSilu, "g = Sigmoid(x)  s = Mul(g, x)  y = Mul(s, two)"),
                 "y f32[2,3,5] = Mul(Swish, two)"));
}

TEST_CASE("fuse_gelu, fuse_silu: near misses say what is in the way") {
  const std::string_view head = "d = Div(x, root)  e = Erf(d)  ";
  const auto misses = [&](std::string_view nodes) {
    return near_misses_of(kGelu, std::string(head) + std::string(nodes));
  };
  CHECK(misses("s = Add(e, one)  q = Mul(x, s)  t = Mul(q, half)  y = Add(t, e)") ==
        "'e' has 2 readers, which is 0 + (1) g");
  CHECK(misses("s = Add(e, one)  q = Mul(x, s)  y = Mul(q, two)") ==
        "'y' is an output of the graph, which is 2 x + (2 x) g");
  CHECK(misses("s = Add(e, one)  q = Mul(x, s)  r = Relu(q)  y = Mul(r, half)") ==
        "'q' is 1 x + (1 x) g with g = Erf(0.7071068 x), expected 0.5 x + (0.5 x) g");
  CHECK(near_misses_of(kGelu,
                       "d = Div(x, literal)  e = Erf(d)  s = Add(e, one)  q = Mul(x, s)"
                       "  y = Mul(q, half)") ==
        "the argument of Erf is 0.7072136 x, expected 0.7071068 x");
  CHECK(near_misses_of(kSilu, "g = Sigmoid(x)  s = Mul(x, g)  y = Add(s, g)") ==
        "'g' has 2 readers, which is 0 + (1) g");
}

TEST_CASE("fuse_gelu: near misses name numbers that are trained") {
  const auto misses = [](std::string_view trained) {
    Fusion fusion = kGelu;
    std::erase(fusion.constants, trained);
    return near_misses_of(fusion,
                          "d = Div(x, root)  e = Erf(d)  s = Add(e, one)  q = Mul(x, s)"
                          "  y = Mul(q, half)");
  };
  for (const std::string number : {"root", "one", "half"}) {
    CHECK(misses(number) ==
          "'" + number + "' is trained, a constant is expected: freeze it (--freeze)");
  }
}

TEST_CASE("fuse_gelu: a value that is asked for stays") {
  CHECK(near_misses_with_gradient_of(
            "s", kGelu,
            "d = Div(x, root)  e = Erf(d)  s = Add(e, one)  q = Mul(x, s)  y = Mul(q, half)") ==
        "the gradient of 's' is asked for, which is 1 + (1) g");
}

TEST_CASE("fuse_gelu, fuse_silu: other uses of the same ops stay, without a word") {
  for (const std::string_view nodes :
       {"y = Tanh(x)", "t = Tanh(x)  y = Mul(t, x)", "y = Sigmoid(x)",
        "g = Sigmoid(x)  n = Exp(x)  y = Mul(g, n)", "d = Div(x, off)  e = Erf(d)  y = Neg(e)",
        "u = Mul(x, two)  g = Sigmoid(u)  y = Mul(x, g)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(kGelu, nodes).empty());
    CHECK(near_misses_of(kSilu, nodes).empty());
  }
}

TEST_CASE("fuse_gelu: a result that is broadcast to another shape stays") {
  const Fusion wide{.pass = "fuse_gelu",
                    .fused = "Gelu",
                    .inputs =
                        "(float[7] x0) => (float[1,7] y) <float[7] p = {1,2,3,4,5,6,7},"
                        " float root = {1.4142135}, float[1,1] one11 = {1}, float half = {0.5}>",
                    .before = "x = Mul(x0, p)",
                    .constants = {"root", "one11", "half"}};
  const Stages all = stages_of(
      wide, "d = Div(x, root)  e = Erf(d)  s = Add(e, one11)  q = Mul(x, s)  y = Mul(q, half)");
  CHECK(count_ops(all.back().graph, "Gelu") == 0);
}

}  // namespace trainscope::test
