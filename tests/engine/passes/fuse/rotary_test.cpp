// fuse_rotary: spellings, what stays and why, and attention that reads what it made.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

// 2 examples of 2 heads, 3 tokens and width 4; tables for two halves, for neighbours (..n), for one
// of each pair (..h), and for the first two elements (..p).
Fusion rotary() {
  return {.pass = "fuse_rotary",
          .fused = "RotaryEmbedding",
          .inputs =
              "(float[2,2,3,4] x0) => (float[2,2,3,4] y) <float[4] p = {0.5,-1,1.5,2},"
              " float[3,4] cos = {1,1,1,1,0.5,0.8,0.5,0.8,-0.4,0.3,-0.4,0.3},"
              " float[3,4] sin = {0,0,0,0,0.8,0.6,0.8,0.6,0.9,0.9,0.9,0.9},"
              " float[1,1,3,4] sin4 = {0,0,0,0,0.8,0.6,0.8,0.6,0.9,0.9,0.9,0.9},"
              " float[3,4] cosn = {1,1,1,1,0.5,0.5,0.8,0.8,-0.4,-0.4,0.3,0.3},"
              " float[3,4] sinn = {0,0,0,0,0.8,0.8,0.6,0.6,0.9,0.9,0.95,0.95},"
              " float[3,2] cosh = {1,1,0.5,0.8,-0.4,0.3}, float[3,2] sinh = {0,0,0.8,0.6,0.9,0.95},"
              " float[3,2] cosp = {1,1,0.5,0.5,-0.4,-0.4}, float[3,2] sinp = {0,0,0.5,0.5,0.9,0.9},"
              " float minus = {-1}, int64[1] lowest = {-9223372036854775807}, int64[1] zero = {0}, "
              "int64[1] one = "
              "{1}, int64[1] two = {2},"
              " int64[1] end = {9223372036854775807}, int64[1] last = {-1}, int64[1] four = {4},"
              " int64[2] twos = {2,2}, int64[2] ones = {1,1}, int64[5] pairs = {2,2,3,2,2},"
              " int64[4] whole = {2,2,3,4}>",
          .before = "x = Mul(x0, p)",
          .constants = {"cos",  "sin",  "sin4",  "cosn",   "sinn", "cosh",  "sinh",
                        "cosp", "sinp", "minus", "lowest", "zero", "one",   "two",
                        "end",  "last", "four",  "twos",   "ones", "pairs", "whole"}};
}

std::string fused_line(std::string_view nodes) {
  return node_lines(stage_named(stages_of(rotary(), nodes), "fuse_rotary").graph);
}

constexpr std::string_view kTorchScript =
    "a = Mul(x, cos)  o = Slice(x, two, end, last)  n = Neg(o)  e = Slice(x, zero, two, last)"
    "  r = Concat <axis = -1> (n, e)  b = Mul(r, sin)  y = Add(a, b)";
constexpr std::string_view kBuilder =
    "e, o = Split <axis = -1> (x, twos)  a = Mul(e, cosh)  b = Mul(o, sinh)  r = Sub(a, b)"
    "  c = Mul(o, cosh)  d = Mul(e, sinh)  i = Add(c, d)  y = Concat <axis = -1> (r, i)";

}  // namespace

TEST_CASE("fuse_rotary: spellings of two halves") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter", kTorchScript, 7},
      {"PyTorch's dynamo exporter",
       "e = Slice(x, zero, two, last, one)  o = Slice(x, two, end, last, one)  n = Neg(o)"
       "  r = Concat <axis = 3> (n, e)  b = Mul(r, sin)  a = Mul(cos, x)  y = Add(a, b)",
       7},
      {"by Split, and a factor of -1",
       "e, o = Split <axis = 3> (x, twos)  n = Mul(o, minus)  r = Concat <axis = 3> (n, e)"
       "  b = Mul(sin, r)  a = Mul(cos, x)  y = Add(b, a)",
       6},
      {"our builders", kBuilder, 8},
      {"the first elements alone",
       "t = Slice(x, zero, two, last)  k = Slice(x, two, end, last)  a = Mul(t, cosp)"
       "  e, o = Split <axis = -1> (t, ones)  n = Neg(o)  r = Concat <axis = -1> (n, e)"
       "  b = Mul(r, sinp)  d = Add(a, b)  y = Concat <axis = -1> (d, k)",
       9},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(rotary(), spelling);
  // Tables of different ranks.
  CHECK(changes_no_result(rotary(),
                          "e, o = Split <axis = 3> (x, twos)  n = Neg(o)"
                          "  r = Concat <axis = 3> (n, e)  b = Mul(r, sin4)  a = Mul(x, cos)"
                          "  y = Add(a, b)"));
  CHECK(contains(fused_line(kBuilder), "y f32[2,2,3,4] = ts.RotaryEmbedding(x, cosh, sinh)"));
}

TEST_CASE("fuse_rotary: spellings of neighbours") {
  constexpr Spelling kSpellings[] = {
      {"every second element",
       "e = Slice(x, zero, end, last, two)  o = Slice(x, one, end, last, two)  n = Neg(o)"
       "  n1 = Unsqueeze(n, last)  e1 = Unsqueeze(e, last)  c = Concat <axis = -1> (n1, e1)"
       "  r = Reshape(c, whole)  b = Mul(r, sinn)  a = Mul(x, cosn)  y = Add(a, b)",
       10},
      {"an axis of pairs",
       "g = Reshape(x, pairs)  e, o = Split <axis = 4> (g, ones)  n = Neg(o)"
       "  c = Concat <axis = 4> (n, e)  r = Reshape(c, whole)  b = Mul(r, sinn)  a = Mul(x, cosn)"
       "  y = Add(a, b)",
       8},
      {"real and imaginary parts",
       "g = Reshape(x, pairs)  e1, o1 = Split <axis = 4> (g, ones)  e = Squeeze(e1, four)"
       "  o = Squeeze(o1, four)  a = Mul(e, cosh)  b = Mul(o, sinh)  r = Sub(a, b)"
       "  c = Mul(o, cosh)  d = Mul(e, sinh)  i = Add(c, d)  r1 = Unsqueeze(r, four)"
       "  i1 = Unsqueeze(i, four)  j = Concat <axis = 4> (r1, i1)  y = Reshape(j, whole)",
       14},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(rotary(), spelling);
  CHECK(contains(fused_line(kSpellings[2].nodes),
                 "= ts.RotaryEmbedding(x, cosh, sinh) interleaved=1"));
}

TEST_CASE("fuse_rotary: rotated back") {
  constexpr std::string_view kBack =
      "e, o = Split <axis = -1> (x, twos)  n = Neg(o)  r = Concat <axis = -1> (n, e)"
      "  a = Mul(x, cos)  b = Mul(r, sin)  y = Sub(a, b)";
  Fusion fusion = rotary();
  fusion.fused = "RotaryEmbeddingGrad";
  check_spelling(fusion, {"by the negative angle", kBack, 6});
}

TEST_CASE("fuse_rotary: angles that are not known before the run") {
  Fusion fusion = rotary();
  const std::string inputs = "(float[2,2,3,4] x0, float[3,2] angles) =>" +
                             std::string(fusion.inputs.substr(fusion.inputs.find("=>") + 2));
  fusion.inputs = inputs;
  constexpr std::string_view kNodes =
      "t = Concat <axis = -1> (angles, angles)  c = Cos(t)  s1 = Sin(t)  s = Mul(s1, minus)"
      "  a = Mul(x, c)  o = Slice(x, two, end, last)  n = Neg(o)  e = Slice(x, zero, two, last)"
      "  r = Concat <axis = -1> (n, e)  b = Mul(r, s)  y = Add(a, b)";
  CHECK(changes_no_result(fusion, kNodes));
  fusion.before = "x = Mul(x0, p)  other = Neg(angles)";
  CHECK(near_misses_of(fusion,
                       "t = Concat <axis = -1> (angles, other)  c = Cos(t)  s = Sin(t)"
                       "  a = Mul(x, c)  o = Slice(x, two, end, last)  n = Neg(o)"
                       "  e = Slice(x, zero, two, last)  r = Concat <axis = -1> (n, e)"
                       "  b = Mul(r, s)  y = Add(a, b)") ==
        "the two elements of a pair are rotated by different angles: 'c'");
}

TEST_CASE("fuse_rotary: tables that are trained") {
  Fusion fusion = rotary();
  std::erase(fusion.constants, "cosh");
  std::erase(fusion.constants, "sinh");
  CHECK(changes_no_result(fusion, kBuilder));
  constexpr std::string_view kNeighbours =
      "g = Reshape(x, pairs)  e1, o1 = Split <axis = 4> (g, ones)  e = Squeeze(e1, four)"
      "  o = Squeeze(o1, four)  a = Mul(e, cosh)  b = Mul(o, sinh)  r = Add(a, b)"
      "  c = Mul(o, cosh)  d = Mul(e, sinh)  i = Sub(c, d)  r1 = Unsqueeze(r, four)"
      "  i1 = Unsqueeze(i, four)  j = Concat <axis = 4> (r1, i1)  y = Reshape(j, whole)";
  CHECK(changes_no_result(fusion, kNeighbours));
  // One number for both elements of a pair would be trained as two.
  std::erase(fusion.constants, "cos");
  CHECK(near_misses_of(fusion, kTorchScript) ==
        "'cos' is trained, a constant is expected: freeze it (--freeze)");
}

TEST_CASE("fuse_rotary: what stays, and why") {
  CHECK(near_misses_of(rotary(),
                       "a = Mul(x, cosn)  o = Slice(x, two, end, last)  n = Neg(o)"
                       "  e = Slice(x, zero, two, last)  r = Concat <axis = -1> (n, e)"
                       "  b = Mul(r, sin)  y = Add(a, b)") ==
        "the two elements of a pair are rotated by different angles: 'cosn'");
  for (const std::string value : {"a", "b", "r"}) {
    CHECK(near_misses_with_gradient_of(value, rotary(), kTorchScript) ==
          "the gradient of '" + value + "' is asked for");
  }
  CHECK(near_misses_of(rotary(),
                       "a = Mul(x, cos)  o = Slice(x, two, end, last)  n = Neg(o)"
                       "  e = Slice(x, zero, two, last)  r = Concat <axis = -1> (n, e)"
                       "  b = Mul(r, sin)  z = Add(a, b)  y = Add(z, r)") == "'r' has 2 readers");
  const Stages kept = stages_of(rotary(),
                                "a = Mul(x, cosn)  o = Slice(x, two, end, last)  n = Neg(o)"
                                "  e = Slice(x, zero, two, last)  r = Concat <axis = -1> (n, e)"
                                "  b = Mul(r, sin)  y = Add(a, b)");
  CHECK(matched_in_near_misses(stage_named(kept, "fuse_rotary")) == "y e o n r b a");
  // No rotations: both by the element itself, both added, another sign.
  for (const std::string_view nodes :
       {"a = Mul(x, cos)  b = Mul(x, sin)  y = Add(a, b)",
        "e, o = Split <axis = -1> (x, twos)  r = Concat <axis = -1> (o, e)  a = Mul(x, cos)"
        "  b = Mul(r, sin)  y = Add(a, b)",
        "e, o = Split <axis = -1> (x, twos)  n = Neg(o)  y = Concat <axis = -1> (n, e)",
        "e, o = Split <axis = -1> (x, twos)  n = Neg(o)  m = Neg(e)"
        "  r = Concat <axis = -1> (n, m)  a = Mul(x, cos)  b = Mul(r, sin)  y = Sub(a, b)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(rotary(), nodes).empty());
  }
}

TEST_CASE("fuse_rotary: scalars have no elements to rotate") {
  CHECK_FALSE(changes_no_result(rotary(),
                                "u = ReduceMean <keepdims = 0> (x)  a = Mul(u, u)"
                                "  b = Mul(u, minus)  z = Add(a, b)  y = Add(x, z)"));
}

TEST_CASE("fuse_rotary: tables that are trained and read backwards stay") {
  Fusion fusion = rotary();
  std::erase(fusion.constants, "cosh");
  std::erase(fusion.constants, "sinh");
  CHECK_FALSE(changes_no_result(
      fusion,
      "e, o = Split <axis = -1> (x, twos)  f = Slice(e, last, lowest, last, last)"
      "  p1 = Slice(o, last, lowest, last, last)  a = Mul(f, cosh)  b = Mul(p1, sinh)"
      "  r1 = Sub(a, b)  c = Mul(p1, cosh)  d = Mul(f, sinh)  i1 = Add(c, d)"
      "  r = Slice(r1, last, lowest, last, last)  i = Slice(i1, last, lowest, last, last)"
      "  y = Concat <axis = -1> (r, i)"));
}

// Packed q, k and v are read where they lie only if none of them is rotated.
TEST_CASE("fuse_attention: values alone that are rotated") {
  Fusion fusion = rotary();
  fusion.pass = "fuse_attention";
  fusion.fused = "Attention";
  const std::string inputs =
      "(float[2,3,2,12] x0) => (float[2,3,2,4] y) <float[12] p = "
      "{0.5,-1,1.5,2,0.5,-1,1.5,2,0.5,-1,1.5,2}, int64[3] fours = {4,4,4}," +
      std::string(fusion.inputs.substr(fusion.inputs.find(" float[3,4] cos")));
  fusion.inputs = inputs;
  fusion.constants.emplace_back("fours");
  CHECK(changes_no_result(
      fusion,
      "q0, k0, v0 = Split <axis = 3> (x, fours)  q = Transpose <perm = [0,2,1,3]> (q0)"
      "  k = Transpose <perm = [0,2,3,1]> (k0)  h = Transpose <perm = [0,2,1,3]> (v0)"
      "  e, o = Split <axis = -1> (h, twos)  n = Neg(o)  r = Concat <axis = -1> (n, e)"
      "  a = Mul(h, cos)  b = Mul(r, sin)  v = Add(a, b)  s = MatMul(q, k)"
      "  w = Softmax <axis = -1> (s)  m = MatMul(w, v)  y = Transpose <perm = [0,2,1,3]> (m)"));
}

// The heads lie beside each other in x, [batch, tokens, heads, width]: no Transpose is left.
TEST_CASE("fuse_attention: rotated heads are read where they lie") {
  Fusion fusion = rotary();
  fusion.pass = "fuse_attention";
  fusion.fused = "Attention";
  const std::string inputs = "(float[2,3,2,4] x0) => (float[2,3,2,4] y) " +
                             std::string(fusion.inputs.substr(fusion.inputs.find('<')));
  fusion.inputs = inputs;
  constexpr std::string_view kNodes =
      "h = Transpose <perm = [0,2,1,3]> (x)  e, o = Split <axis = -1> (h, twos)  n = Neg(o)"
      "  r = Concat <axis = -1> (n, e)  a = Mul(h, cos)  b = Mul(r, sin)  q = Add(a, b)"
      "  g = Transpose <perm = [0,2,1,3]> (x0)  e1, o1 = Split <axis = -1> (g, twos)"
      "  n1 = Neg(o1)  r1 = Concat <axis = -1> (n1, e1)  a1 = Mul(g, cos)  b1 = Mul(r1, sin)"
      "  k0 = Add(a1, b1)  k = Transpose <perm = [0,1,3,2]> (k0)  s = MatMul(q, k)"
      "  w = Softmax <axis = -1> (s)  m = MatMul(w, h)  y = Transpose <perm = [0,2,1,3]> (m)";
  CHECK(changes_no_result(fusion, kNodes));
  const Stages all = stages_of(fusion, kNodes);
  CHECK(stage_named(all, "fuse_rotary").counters.at("fused") == 2);
  const Graph& step = all.back().graph;
  CHECK(count_ops(step, "Attention") == 1);
  CHECK(count_ops(step, "RotaryEmbedding") == 2);  // of q and k
  CHECK(count_ops(step, "RotaryEmbeddingGrad") == 1);
  CHECK(count_ops(step, "Transpose") == 0);
}

// Of [batch, sequence, heads * width], by positions in longer tables.
TEST_CASE("fuse_rotary: ONNX's own op rotates the same elements") {
  ImportOptions options;
  options.frozen = {"c", "s", "c2", "s2"};
  const auto imported = [&](std::string_view opset, std::string_view nodes) {
    return graph(
        OnnxModel::parse_text(
            "<ir_version: 8, opset_import: [\"\" : " + std::string(opset) +
            "]> g (float[1,2,8] x) => (float[1,2,8] y) <float[3,2] c = {9,9,0.5,0.8,-0.4,0.3},"
            " float[3,2] s = {9,9,0.8,0.6,0.9,0.95}, int64[1,2] at = {1,2}, int64[4] heads ="
            " {1,2,2,4}, int64[3] flat = {1,2,8}, float[1,2,1,2] c2 = {0.5,0.8,-0.4,0.3},"
            " float[1,2,1,2] s2 = {0.8,0.6,0.9,0.95}, int64[2] halves = {2,2}> {" +
            std::string(nodes) + "}"),
        options);
  };
  const Graph own = imported("23", "y = RotaryEmbedding <num_heads = 2> (x, c, s, at)");
  CHECK(count_ops(own, "RotaryEmbedding") == 1);
  const Graph spelled = imported(
      "17",
      "h = Reshape(x, heads)  e, o = Split <axis = 3> (h, halves)  a = Mul(e, c2)  b = Mul(o, s2)"
      "  r = Sub(a, b)  k = Mul(o, c2)  d = Mul(e, s2)  i = Add(k, d)"
      "  z = Concat <axis = 3> (r, i)  y = Reshape(z, flat)");
  const Tensors inputs = random_inputs(spelled, 3);
  CHECK(difference(outputs_of(own, inputs), outputs_of(spelled, inputs)) < 1e-6);
}

}  // namespace trainscope::test
