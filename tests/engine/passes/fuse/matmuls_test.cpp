// merge_matmuls: which matmuls of one input become one node, and what stays and why.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kInputs =
    "(float[2,3,4] x0) => (float[2,3,5] y) <float[4] p = {0.5,-1,1.5,2}, float[4,5] w ="
    " {1,2,3,4,5,-6,7,8,9,1,2,-3,4,5,6,7,8,9,-1,2}, float[4,5] v ="
    " {3,2,1,4,0.5,-6,1,8,-9,1,2,-3,1,5,6,-7,8,2,-1,1}, float[5,4] stored ="
    " {1,2,3,4,5,6,-7,8,9,1,2,3,4,5,6,7,8,9,1,-2}, float[5,4] other ="
    " {2,1,3,1,5,-6,-7,8,2,1,2,-3,4,0.5,6,7,1,9,1,-2}, float[4,1] narrow = {1,-2,3,0.5}, float[5] b"
    " = {1,-2,3,4,5}, float[5] c = {5,4,-3,2,1}, float[5,4] back ="
    " {2,1,3,1,5,-6,-7,8,2,1,2,-3,4,0.5,6,7,1,9,1,-2}, float half = {0.5}, int64[2] flat = {6,4},"
    " int64[3] deep = {2,3,5}, float[2,4,5] many = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,"
    "6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4}>";

Fusion fusion() {
  return {.pass = "merge_matmuls",
          .fused = "MultiMatMul",
          .inputs = kInputs,
          .before = "x = Mul(x0, p)",
          .constants = {"half", "flat", "deep"}};
}

std::string merged_lines(std::string_view nodes) {
  return node_lines(stage_named(stages_of(fusion(), nodes), "merge_matmuls").graph);
}

// Each matmul by itself writes as much as all of them as one: check_spelling asks for less.
void check_merged(std::string_view nodes, int matmuls, int groups = 1) {
  CHECK(changes_no_result(fusion(), nodes));
  const Stages with = stages_of(fusion(), nodes);
  const Stage& stage = stage_named(with, "merge_matmuls");
  const Stage& before = *(&stage - 1);
  CHECK(stage.counters.at("fused") == groups);
  CHECK(stage.counters.at("matmuls") == matmuls);
  CHECK(count_ops(stage.graph, "MultiMatMul") == groups);
  CHECK(stage.nodes == before.nodes - matmuls + groups);
  CHECK(stage.cost.flops == before.cost.flops);
  CHECK(stage.cost.bytes_read < before.cost.bytes_read);
  CHECK(stage.near_misses.empty());
  CHECK_FALSE(changes(stage.graph, "merge_matmuls"));
  for (NodeId id : stage.graph.order()) {
    const Node& node = stage.graph.node(id);
    if (node.op->name != "MultiMatMul") continue;
    CHECK(node.provenance.pass == "merge_matmuls");
    CHECK(node.provenance.sources.size() >= node.outputs.size());
  }
}

}  // namespace

TEST_CASE("merge_matmuls: layers as they are exported and built") {
  constexpr std::string_view kSpellings[] = {
      // PyTorch's TorchScript exporter: weights transposed, biases first.
      "t = Transpose <perm = [1, 0]> (stored)  m = MatMul(x, t)  q = Add(b, m)"
      "  s = Transpose <perm = [1, 0]> (other)  n = MatMul(x, s)  k = Add(c, n)  y = Mul(q, k)",
      // Its dynamo exporter and our builders.
      "m = MatMul(x, w)  q = Add(m, b)  n = MatMul(x, v)  k = Add(n, c)  y = Mul(q, k)",
      // Without biases, with one of them, an activation between.
      "m = MatMul(x, w)  g = Tanh(m)  n = MatMul(x, v)  y = Mul(g, n)",
      "m = MatMul(x, w)  n = MatMul(x, v)  k = Add(n, c)  y = Mul(m, k)",
      "m = MatMul(x, w)  q = Add(m, b)  n = MatMul(x, v)  y = Mul(q, n)",
      // Of other widths, and rows in one axis.
      "m = MatMul(x, w)  n = MatMul(x, narrow)  y = Mul(m, n)",
      "r = Reshape(x, flat)  m = Gemm <transB = 1> (r, stored, b)  n = Gemm <transB = 1> (r, other)"
      "  a = Mul(m, n)  y = Reshape(a, deep)",
  };
  for (const std::string_view nodes : kSpellings) {
    CAPTURE(nodes);
    check_merged(nodes, 2);
  }
  check_merged(
      "m = MatMul(x, w)  n = MatMul(x, v)  o = MatMul(x, narrow)  a = Mul(m, n)"
      "  y = Mul(a, o)",
      3);
  CHECK(contains(merged_lines(kSpellings[0]),
                 "= ts.MultiMatMul(x, stored, other, b, c) transpose_b=1\n"));
  CHECK(contains(merged_lines(kSpellings[4]), "= ts.MultiMatMul(x, w, v, b)\n"));
}

TEST_CASE("merge_matmuls: a matmul of a matmul, each a group of its own") {
  check_merged(
      "m = MatMul(x, w)  n = MatMul(x, v)  a = Mul(m, n)  d = MatMul(a, back)"
      "  e = MatMul(d, w)  f = MatMul(d, v)  y = Mul(e, f)",
      4, 2);
}

TEST_CASE("merge_matmuls: what stays says why") {
  const auto near_miss = [](std::string_view nodes) { return near_misses_of(fusion(), nodes); };
  CHECK(near_miss("m = MatMul(x, w)  t = Transpose <perm = [1, 0]> (stored)  n = MatMul(x, t)"
                  "  y = Mul(m, n)") == "one matrix is transposed, that of 'MatMul_1' not");
  CHECK(near_miss("m = MatMul(x, w)  d = MatMul(m, back)  e = MatMul(d, w)  n = MatMul(x, v)"
                  "  y = Mul(e, n)") == "other matmuls stand between it and 'MatMul_1'");
  CHECK(near_miss("m = MatMul(x, w)  s = Sin(v)  n = MatMul(x, s)  y = Mul(m, n)") ==
        "'s' is made after 'MatMul_1'");
  const auto matched = [](std::string_view nodes) {
    return matched_in_near_misses(stage_named(stages_of(fusion(), nodes), "merge_matmuls"));
  };
  CHECK(matched("m = MatMul(x, w)  s = Sin(v)  n = MatMul(x, s)  y = Mul(m, n)") == "n m");
  CHECK(matched("m = MatMul(x, w)  d = MatMul(m, back)  e = MatMul(d, w)  n = MatMul(x, v)"
                "  y = Mul(e, n)") == "n m");
}

TEST_CASE("merge_matmuls: other matmuls stay, without a word") {
  for (const std::string_view nodes :
       {"m = MatMul(x, w)  y = Tanh(m)", "m = MatMul(x, w)  n = MatMul(x, many)  y = Mul(m, n)",
        "m = MatMul(x, w)  z = Sin(x)  n = MatMul(z, v)  y = Mul(m, n)",
        "r = Reshape(x, flat)  m = Gemm <alpha = 0.5> (r, w)  n = Gemm(r, v)  a = Mul(m, n)"
        "  y = Reshape(a, deep)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(fusion(), nodes).empty());
  }
}

}  // namespace trainscope::test
