// fuse_bias: spellings of linear layers, and what stays and why.
#include <doctest/doctest.h>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kInputs =
    "(float[2,3,4] x0) => (float[2,3,5] y) <float[4] p = {0.5,-1,1.5,2}, float[4,5] w ="
    " {1,2,3,4,5,-6,7,8,9,1,2,-3,4,5,6,7,8,9,-1,2}, float[5,4] stored ="
    " {1,2,3,4,5,6,-7,8,9,1,2,3,4,5,6,7,8,9,1,-2}, float[5] b = {1,-2,3,4,5}, float[1,1,5] wide ="
    " {5,4,3,2,1}, float[3,1] rows = {1,2,3}, float half = {0.5}, int64[2] flat = {6,4}, int64[3]"
    " deep = {2,3,5}>";

Fusion fusion_of(std::string_view fused) {
  return {.pass = "fuse_bias",
          .fused = fused,
          .inputs = kInputs,
          .before = "x = Mul(x0, p)",
          .constants = {"half", "flat", "deep"}};
}

std::string fused_lines(std::string_view nodes) {
  const Fusion fusion = fusion_of("BatchMatMul");
  return node_lines(stage_named(stages_of(fusion, nodes), fusion.pass).graph);
}

}  // namespace

TEST_CASE("fuse_bias: linear layers as they are exported and built") {
  constexpr Spelling kSpellings[] = {
      {"PyTorch's TorchScript exporter: the weight transposed, the bias first",
       "t = Transpose <perm = [1, 0]> (stored)  m = MatMul(x, t)  y = Add(b, m)", 2},
      {"PyTorch's dynamo exporter", "m = MatMul(x, w)  y = Add(m, b)", 2},
      {"our builders, with an activation behind", "m = MatMul(x, w)  a = Add(m, b)  y = Tanh(a)",
       2},
      {"a bias of the rank of the result, which is put into another shape",
       "m = MatMul(x, w)  y = Add(m, wide)", 1},
      {"rows in one axis meanwhile",
       "r = Reshape(x, flat)  m = MatMul(r, w)  d = Reshape(m, deep)  y = Add(d, b)", 2},
  };
  for (const Spelling& spelling : kSpellings) check_spelling(fusion_of("BatchMatMul"), spelling);
  check_spelling(fusion_of("Gemm"),
                 {"a Gemm that adds nothing itself",
                  "r = Reshape(x, flat)  m = Gemm <beta = 0.5> (r, w)  a = Add(m, b)"
                  "  y = Reshape(a, deep)",
                  2});
  CHECK(contains(fused_lines(kSpellings[0].nodes),
                 "y f32[2,3,5] = ts.BatchMatMul(x, stored, b) transpose_b=1\n"));
  CHECK(contains(fused_lines(kSpellings[1].nodes), "y f32[2,3,5] = ts.BatchMatMul(x, w, b)\n"));
}

TEST_CASE("fuse_bias: what stays says why") {
  const auto near_miss = [](std::string_view nodes) {
    return near_misses_of(fusion_of("BatchMatMul"), nodes);
  };
  CHECK(near_miss("m = MatMul(x, w)  a = Add(m, b)  y = Add(a, m)") == "'m' has 2 readers");
  const Stages shaped = stages_of(fusion_of("BatchMatMul"),
                                  "r = Reshape(x, flat)  m = MatMul(r, w)  d = Reshape(m, deep)"
                                  "  a = Add(d, b)  y = Add(a, d)");
  CHECK(matched_in_near_misses(stage_named(shaped, "fuse_bias")) == "a d m");
  CHECK(near_miss("r = Reshape(x, flat)  m = Gemm <alpha = 0.5> (r, w)  a = Add(m, b)"
                  "  y = Reshape(a, deep)") == "Gemm 'Gemm_2' scales its result");
  CHECK(near_miss("r = Reshape(x, flat)  m = Gemm(r, w, b)  a = Add(m, b)"
                  "  y = Reshape(a, deep)") == "Gemm 'Gemm_2' adds something already");
}

TEST_CASE("fuse_bias: other additions stay, without a word") {
  const Fusion fusion = fusion_of("BatchMatMul");
  for (const std::string_view nodes :
       {"m = MatMul(x, w)  y = Add(m, rows)", "m = MatMul(x, w)  y = Add(m, half)",
        "m = MatMul(x, w)  y = Add(m, m)", "m = MatMul(x, w)  e = Exp(m)  y = Add(e, b)",
        "m = MatMul(x, w)  n = Mul(b, half)  y = Sub(m, n)"}) {
    CAPTURE(nodes);
    CHECK(near_misses_of(fusion, nodes).empty());
  }
}

}  // namespace trainscope::test
