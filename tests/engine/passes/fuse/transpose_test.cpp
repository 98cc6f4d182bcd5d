// fuse_transpose: which Transposes a matmul absorbs, and that numbers stay.
#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::string rewritten(std::string_view text) {
  return node_lines(passed(graph(text), {"fuse_transpose", "dead_code"}));
}

}  // namespace

TEST_CASE("fuse_transpose: a transposed weight is read as it is stored") {
  CHECK(rewritten("(float[4,3] x, float[5,3] w) => (float[4,5] y)"
                  "{ t = Transpose <perm = [1, 0]> (w)  y = MatMul(x, t) }") ==
        "y f32[4,5] = ts.BatchMatMul(x, w) transpose_b=1\noutput y\n");
  // Without perm all axes are reversed.
  CHECK(rewritten("(float[3,4] x, float[3,5] w) => (float[4,5] y)"
                  "{ t = Transpose(x)  y = MatMul(t, w) }") ==
        "y f32[4,5] = ts.BatchMatMul(x, w) transpose_a=1\noutput y\n");
  CHECK(rewritten("(float[4,3] x, float[5,3] w) => (float[4,5] y)"
                  "{ t = Transpose <perm = [1, 0]> (w)  y = Gemm <alpha = 2.0> (x, t) }") ==
        "y f32[4,5] = Gemm(x, w) alpha=2 transB=1\noutput y\n");
  CHECK(rewritten("(float[4,3] x, float[3,5] w) => (float[4,5] y)"
                  "{ t = Transpose <perm = [1, 0]> (w)  y = Gemm <transB = 1> (x, t) }") ==
        "y f32[4,5] = Gemm(x, w) transB=0\noutput y\n");
}

TEST_CASE("fuse_transpose: of a larger permutation what moves rows is left") {
  CHECK(rewritten("(float[2,3,5,7] q, float[2,5,3,7] k) => (float[2,3,5,5] y)"
                  "{ t = Transpose <perm = [0, 2, 3, 1]> (k)  y = MatMul(q, t) }") ==
        "Transpose f32[2,3,5,7] = Transpose(k) perm={0,2,1,3}\n"
        "y f32[2,3,5,5] = ts.BatchMatMul(q, Transpose) transpose_b=1\noutput y\n");
}

TEST_CASE("fuse_transpose: the numbers stay, forward and backward") {
  const std::string text =
      "(float[2,3,5,7] q, float[2,5,3,7] k) => (float[2,3,5,4] y) <float[4,5] w = "
      "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}>"
      "{ t = Transpose <perm = [0, 2, 3, 1]> (k)  s = MatMul(q, t)"
      "  u = Transpose <perm = [1, 0]> (w)  y = MatMul(s, u) }";
  CompileOptions with;
  with.training.loss = {.kind = LossKind::kMse, .output = "y"};
  with.training.mode = GraphMode::kGradients;
  CompileOptions without = with;
  without.passes.disabled = {"fuse_transpose"};
  const Graph rewritten_graph = stages(text, with).back().graph;
  const Graph plain = stages(text, without).back().graph;
  CHECK(count_ops(rewritten_graph, "Transpose") < count_ops(plain, "Transpose"));
  const Tensors inputs = random_inputs(plain, 3);
  CHECK(difference(results_of(rewritten_graph, inputs), results_of(plain, inputs)) < 1e-5);
}

TEST_CASE("fuse_transpose: other Transposes and vectors stay") {
  const auto stays = [](std::string_view text) {
    const Graph before = graph(text);
    return print(passed(before, {"fuse_transpose"})) == print(before);
  };
  // Rows stay whole already.
  CHECK(
      stays("(float[2,3,5,7] q, float[2,7,3,4] v) => (float[2,3,5,4] y)"
            "{ t = Transpose <perm = [0, 2, 1, 3]> (v)  y = MatMul(q, t) }"));
  // The last axis goes too far away.
  CHECK(
      stays("(float[7,4,3] q, float[5,3,7] k) => (float[7,4,5] y)"
            "{ t = Transpose <perm = [2, 1, 0]> (k)  y = MatMul(q, t) }"));
  CHECK(
      stays("(float[3] x, float[5,3] w) => (float[5] y)"
            "{ t = Transpose <perm = [1, 0]> (w)  y = MatMul(x, t) }"));
}

TEST_CASE("fuse_transpose: a Transpose that others read stays for them") {
  const Graph after =
      passed(graph("(float[4,3] x, float[5,3] w) => (float[4,5] y, float[3,5] z)"
                   "{ t = Transpose <perm = [1, 0]> (w)  y = MatMul(x, t)  z = Exp(t) }"),
             {"fuse_transpose", "dead_code"});
  CHECK(count_ops(after, "Transpose") == 1);
  CHECK(count_ops(after, "BatchMatMul") == 1);
}

}  // namespace trainscope::test
