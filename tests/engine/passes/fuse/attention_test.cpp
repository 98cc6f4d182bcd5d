// fuse_attention: spellings, and what stays and why.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

// 2 examples of 3 tokens, 2 heads of width 4.
Fusion fusion_of(std::string_view inputs) {
  return {.pass = "fuse_attention",
          .fused = "Attention",
          .inputs = inputs,
          .before = "x = Mul(x0, p)",
          .constants = {"ends", "heads", "merged", "scale", "root", "later", "unseen", "low",
                        "flat", "one"}};
}

constexpr std::string_view kPacked =
    "(float[2,3,24] x0) => (float[2,3,8] y) <float[1] p = {0.5}, int64[3] ends = {8,8,8}, int64[4]"
    " heads = {2,3,2,4}, int64[3] merged = {2,3,8}, float scale = {0.5}, float root = {2},"
    " float[3,3] later = {0,-1e10,-1e10,0,0,-1e10,0,0,0}, bool[1,1,3,3] unseen ="
    " {0,1,1,0,0,1,0,0,0}, float low = {-1e30}, int64[4] flat = {2,3,6,4}, int64[3] one ="
    " {2,2,2}>";

}  // namespace

TEST_CASE("fuse_attention: q, k and v of one linear layer are read where they lie") {
  const Fusion packed = fusion_of(kPacked);
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter",
       "q1, k1, v1 = Split <axis = 2> (x, ends)  q2 = Reshape(q1, heads)  k2 = Reshape(k1, heads)"
       "  v2 = Reshape(v1, heads)  q = Transpose <perm = [0,2,1,3]> (q2)"
       "  k = Transpose <perm = [0,2,3,1]> (k2)  v = Transpose <perm = [0,2,1,3]> (v2)"
       "  r = MatMul(q, k)  c = Mul(r, scale)  m = Where(unseen, low, c)"
       "  w = Softmax <axis = -1> (m)  h = MatMul(w, v)  t = Transpose <perm = [0,2,1,3]> (h)"
       "  y = Reshape(t, merged)",
       12},
      {"our builders",
       "a = Reshape(x, flat)  b = Transpose <perm = [0,2,1,3]> (a)"
       "  q, k, v = Split <axis = 1> (b, one)  z = Mul(q, scale)"
       "  o = Transpose <perm = [0,1,3,2]> (k)  r = MatMul(z, o)  m = Add(r, later)"
       "  w = Softmax <axis = -1> (m)  h = MatMul(w, v)  t = Transpose <perm = [0,2,1,3]> (h)"
       "  y = Reshape(t, merged)",
       8},
      {"PyTorch's dynamo exporter: both factors scaled",
       "q1, k1, v1 = Split <axis = 2> (x, ends)  q2 = Reshape(q1, heads)  k2 = Reshape(k1, heads)"
       "  v2 = Reshape(v1, heads)  q = Transpose <perm = [0,2,1,3]> (q2)"
       "  k = Transpose <perm = [0,2,1,3]> (k2)  v = Transpose <perm = [0,2,1,3]> (v2)"
       "  z = Div(q, root)  o = Transpose <perm = [0,1,3,2]> (k)  n = Mul(o, scale)"
       "  r = MatMul(z, n)  m = Add(later, r)  w = Softmax <axis = 3> (m)  h = MatMul(w, v)"
       "  t = Transpose <perm = [0,2,1,3]> (h)  y = Reshape(t, merged)",
       13},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(packed, spelling);
}

// Outputs of one Split that are no heads side by side, or lie otherwise: read one by one.
TEST_CASE("fuse_attention: pieces that cannot be read where they lie") {
  constexpr std::string_view kRest =
      "  q = Transpose <perm = [0,2,1,3]> (a)  k = Transpose <perm = [0,2,3,1]> (b)"
      "  v = Transpose <perm = [0,2,1,3]> (c)  r = MatMul(q, k)  w = Softmax <axis = -1> (r)"
      "  h = MatMul(w, v)  y = Transpose <perm = [0,2,1,3]> (h)";
  // 4 tokens of 2 heads of width 4, out of rows that hold 2 tokens.
  Fusion rows = fusion_of(
      "(float[1,2,48] x0) => (float[1,4,2,4] y) <float[1] p = {0.5}, int64[3] ends = {16,16,16},"
      " int64[4] heads = {1,4,2,4}>");
  rows.constants = {"ends", "heads"};
  CHECK(changes_no_result(rows,
                          "d, e, f = Split <axis = 2> (x, ends)  a = Reshape(d, heads)"
                          "  b = Reshape(e, heads)  c = Reshape(f, heads)" +
                              std::string(kRest)));
  // Tokens and width of k change places.
  Fusion rotated = fusion_of(
      "(float[1,4,6,4] x0) => (float[1,4,2,4] y) <float[1] p = {0.5}, int64[3] ends = {2,2,2}>");
  rotated.constants = {"ends"};
  CHECK(changes_no_result(rotated,
                          "a, e, c = Split <axis = 2> (x, ends)"
                          "  b = Transpose <perm = [0,3,2,1]> (e)" +
                              std::string(kRest)));
}

constexpr std::string_view kSeparate =
    "(float[2,3,4,4] x0) => (float[2,3,4,4] y) <float[1] p = {0.5}, float[2,3,2,4] k0 ="
    " {1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2,1,0,-1,-2,-3,2,1,3,1,2,0,4,0,6,-7,1,2,1,-1,-2,5,4,3,2,1,0,"
    "-1,-2,-3,2,1,3}, float[2,3,2,4] v0 ="
    " {1,0,3,4,5,6,2,8,9,8,1,6,5,4,3,2,1,0,-1,-2,-3,2,1,3,1,2,0,4,0,6,-7,1,2,1,-1,-2,5,4,3,2,1,0,"
    "-1,-2,-3,2,1,3}, float root = {4}, float[2,1,1,3] padding = {0,0,-3,0,0,0}, float[4,1,3] "
    "slopes"
    " = {0,1,2,0,-1,1,2,1,0,0,2,1}, int64[5] times = {1,1,2,1,1}, int64[1] two = {2}, int64[4] "
    "whole"
    " = {2,4,3,4}, float scale = {0.25}, float low = {-1e30}, bool[1,1,3,3] some "
    "= {0,1,0,0,0,0,0,0,0}>";
const std::vector<std::string> kConstants{"root",  "padding", "times", "two",
                                          "whole", "scale",   "low",   "some"};
constexpr std::string_view kByHead =
    "x = Mul(x0, p)  q = Transpose <perm = [0,2,1,3]> (x)  k2 = Transpose <perm = [0,2,1,3]> (k0)"
    "  v2 = Transpose <perm = [0,2,1,3]> (v0)  k3 = Unsqueeze(k2, two)  k4 = Expand(k3, times)"
    "  k = Reshape(k4, whole)  v3 = Unsqueeze(v2, two)  v4 = Expand(v3, times)"
    "  v = Reshape(v4, whole)  o = Transpose <perm = [0,1,3,2]> (k)  r = MatMul(q, o)  ";

// q and k become scores r, v is there; 9 nodes that the fused one stands for.
Fusion separate() {
  Fusion fusion = fusion_of(kSeparate);
  fusion.before = kByHead;
  fusion.constants = kConstants;
  return fusion;
}

TEST_CASE("fuse_attention: heads that share keys and values, padding masks") {
  check_spelling(separate(), {"grouped queries and a bias",
                              "c = Div(r, root)  m = Add(c, padding)  w = Softmax <axis = -1> (m)"
                              "  h = MatMul(w, v)  y = Transpose <perm = [0,2,1,3]> (h)",
                              15});
}

TEST_CASE("fuse_attention: what stays says why") {
  const auto near_miss = [](std::string_view nodes) { return near_misses_of(separate(), nodes); };
  constexpr std::string_view kRest = "  h = MatMul(w, v)  y = Transpose <perm = [0,2,1,3]> (h)";
  const auto weights = [&](std::string_view nodes) {
    return near_miss(std::string(nodes) + std::string(kRest));
  };
  CHECK(weights("m = Add(r, padding)  c = Div(m, root)  w = Softmax <axis = -1> (c)") ==
        "the scores are scaled after a bias");
  CHECK(weights("a = Abs(x)  b = ReduceMax(a)  m = Add(r, b)  w = Softmax <axis = -1> (m)") ==
        "the bias 'b' is trained");
  CHECK(weights("c = Exp(r)  w = Softmax <axis = -1> (c)") ==
        "'Exp_12' (Exp) stands between the scores and their softmax");
  CHECK(weights("m = Where(some, low, r)  w = Softmax <axis = -1> (m)") ==
        "the mask is not that of a causal model");
  CHECK(near_miss("w = Softmax <axis = -1> (r)  h = MatMul(w, v)  s = ReduceMax(w)"
                  "  t = Transpose <perm = [0,2,1,3]> (h)  y = Add(t, s)") == "'w' has 2 readers");
  const Stages kept = stages_of(
      separate(), "s = Exp(r)  c = Div(s, root)  w = Softmax <axis = -1> (c)" + std::string(kRest));
  CHECK(matched_in_near_misses(stage_named(kept, "fuse_attention")) == "w h c");
}

TEST_CASE("fuse_attention: a value that is asked for stays") {
  constexpr std::string_view kNodes =
      "c = Div(r, root)  w = Softmax <axis = -1> (c)  h = MatMul(w, v)"
      "  y = Transpose <perm = [0,2,1,3]> (h)";
  for (const std::string value : {"c", "w"}) {
    CHECK(near_misses_with_gradient_of(value, separate(), kNodes) ==
          "the gradient of '" + value + "' is asked for");
  }
  // Before the matmuls there is attention all the same, and the gradient is the same.
  for (const std::string value : {"q", "v2"}) {
    CAPTURE(value);
    CompileOptions options = options_of(separate());
    options.training.gradient_of = {value};
    const std::string text = text_of(separate(), kNodes);
    const Graph fused = stages(text, options).back().graph;
    options.passes.disabled = {"fuse_attention"};
    const Graph plain = stages(text, options).back().graph;
    CHECK(count_ops(fused, "Attention") == 1);
    const Tensors inputs = random_inputs(plain, 3);
    CHECK(difference(results_of(fused, inputs), results_of(plain, inputs)) < 4e-6);
  }
}

// The kernel works on 64 queries at a time: 3 blocks, the last of one or two rows.
TEST_CASE("fuse_attention: more queries than the kernel takes at once") {
  std::string later;  // of 130 tokens
  for (int i = 0; i < 130; ++i) {
    for (int j = 0; j < 130; ++j) later += j > i ? ",1" : ",0";
  }
  const std::string causal_inputs =
      "(float[2,130,2,4] x0) => (float[2,130,2,4] y) <float[1] p = {0.5}, float low = {-1e30},"
      " bool[130,130] later = {" +
      later.substr(1) + "}>";
  Fusion causal = fusion_of(causal_inputs);
  causal.constants = {"low", "later"};
  CHECK(changes_no_result(causal,
                          "q = Transpose <perm = [0,2,1,3]> (x)"
                          "  o = Transpose <perm = [0,2,3,1]> (x)  r = MatMul(q, o)"
                          "  m = Where(later, low, r)  w = Softmax <axis = -1> (m)"
                          "  h = MatMul(w, q)  y = Transpose <perm = [0,2,1,3]> (h)"));
  // 129 queries of 4 heads, 70 keys of 2, and a bias of their own for each.
  Fusion crossed = fusion_of(
      "(float[2,129,4,4] x0, float[2,70,2,4] z0, float[2,1,129,70] bias) => (float[2,129,4,4] y)"
      " <float[1] p = {0.5}, float[2,1] s = {0.5, 2}, int64[1] two = {2},"
      " int64[5] times = {1,1,2,1,1}, int64[4] whole = {2,4,70,4}>");
  crossed.constants = {"two", "times", "whole"};
  CHECK(changes_no_result(crossed,
                          "q = Transpose <perm = [0,2,1,3]> (x)  z = Mul(z0, s)"
                          "  z1 = Transpose <perm = [0,2,1,3]> (z)  z2 = Unsqueeze(z1, two)"
                          "  z3 = Expand(z2, times)  v = Reshape(z3, whole)"
                          "  o = Transpose <perm = [0,1,3,2]> (v)  r = MatMul(q, o)"
                          "  m = Add(r, bias)  w = Softmax <axis = -1> (m)  h = MatMul(w, v)"
                          "  y = Transpose <perm = [0,2,1,3]> (h)"));
}

TEST_CASE("fuse_attention: one head of queries for several of keys stays") {
  Fusion few = fusion_of("(float[2,3,2,4] x0) => (float[2,3,2,4] y) <float[1] p = {0.5}>");
  few.constants = {};
  CHECK(
      near_misses_of(few,
                     "m = ReduceMean <axes = [2]> (x)  q = Transpose <perm = [0,2,1,3]> (m)"
                     "  k = Transpose <perm = [0,2,3,1]> (x)  v = Transpose <perm = [0,2,1,3]> (x)"
                     "  r = MatMul(q, k)  w = Softmax <axis = -1> (r)  h = MatMul(w, v)"
                     "  y = Transpose <perm = [0,2,1,3]> (h)") ==
      "1 heads of queries cannot share 2 of keys");
}

}  // namespace trainscope::test
