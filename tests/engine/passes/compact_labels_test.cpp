// compact_labels: the same loss, gradients and update from the rows that count, and what stays.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

CompileOptions training(bool skip_ignored) {
  CompileOptions options;
  options.training.mode = GraphMode::kTrain;
  options.training.loss = {.output = "y"};
  options.training.optimizer = {.kind = OptimizerKind::kSgd};
  options.training.keep_gradients = true;
  options.training.skip_ignored = skip_ignored;
  return options;
}

Tensors results(const Graph& step, const std::vector<std::int64_t>& labels) {
  Tensors inputs = random_inputs(step, 7);
  Tensor& given = inputs.at("labels");
  given = Tensor::of<std::int64_t>(given.type().shape, labels);
  return results_of(step, inputs);
}

// Largest difference that skipping makes.
double change(std::string_view text, const std::vector<std::int64_t>& labels) {
  const Graph skipping = stages(text, training(true)).back().graph;
  const Graph whole = stages(text, training(false)).back().graph;
  REQUIRE(count_ops(skipping, "CompactRows") == 1);
  REQUIRE(count_ops(skipping, "CompactMatMul") == 3);  // and both gradients
  REQUIRE(count_ops(whole, "CompactMatMul") == 0);
  const Tensors expected = results(whole, labels);
  REQUIRE(expected.size() > 2);
  return difference(results(skipping, labels), expected);
}

constexpr double kRounding = 2e-6;

constexpr std::string_view kMatMul =
    "(float[2,3,4] x) => (float[2,3,5] y) <float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},"
    " float[4,5] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}>"
    " { a = MatMul(x, v)  h = Tanh(a)  y = MatMul(h, w) }";
constexpr std::string_view kBias =
    "(float[6,4] x) => (float[6,5] y) <float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},"
    " float[4,5] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, float[5] b = {1,2,3,4,5}>"
    " { a = MatMul(x, v)  h = Tanh(a)  s = MatMul(h, w)  y = Add(b, s) }";
constexpr std::string_view kGemm =
    "(float[6,4] x) => (float[6,5] y) <float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},"
    " float[5,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, float[5] b = {1,2,3,4,5}>"
    " { a = MatMul(x, v)  h = Tanh(a)  y = Gemm<transB = 1>(h, w, b) }";
// As PyTorch's exporters write a tied table: transposed; the scores in another shape.
constexpr std::string_view kTransposed =
    "(float[6,4] x) => (float[2,3,5] y) <float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},"
    " float[5,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, int64[3] deep = {2,3,5}>"
    " { a = MatMul(x, v)  h = Tanh(a)  t = Transpose <perm = [1, 0]> (w)  s = MatMul(h, t)"
    "  y = Reshape(s, deep) }";

const Stage& the_stage(const Stages& all) {
  const auto found = std::ranges::find(all, "compact_labels", &Stage::name);
  REQUIRE(found != all.end());
  return *found;
}

std::string near_miss(std::string_view text, const CompileOptions& options = training(true)) {
  const Stages all = stages(text, options);
  CHECK_FALSE(the_stage(all).changed);
  const std::vector<NearMiss>& misses = the_stage(all).near_misses;
  return misses.empty() ? "" : misses.front().reason;
}

}  // namespace

TEST_CASE("compact_labels: loss, gradients and parameters as from all rows") {
  for (std::string_view text : {kMatMul, kBias, kGemm, kTransposed}) {
    CAPTURE(text);
    CHECK(change(text, {0, 4, 2, 1, 1, 3}) < kRounding);
    CHECK(change(text, {0, -100, -100, -100, 1, 3}) < kRounding);
    CHECK(change(text, {-100, -100, -100, -100, -100, 3}) < kRounding);
  }
}

TEST_CASE("compact_labels: only when asked, in training, in one chunk") {
  CHECK(near_miss(kMatMul, training(false)).empty());
  CompileOptions options = training(true);
  options.training.loss_chunks = 2;
  CHECK(near_miss(kMatMul, options).empty());
  options = training(true);
  options.training.keep_outputs = true;
  CHECK(near_miss(kMatMul, options).empty());
  options = training(true);
  options.training.mode = GraphMode::kGradients;
  CHECK(near_miss(kMatMul, options).empty());
  const Stages all = stages(kMatMul, training(true));
  CHECK_FALSE(changes(the_stage(all).graph, "compact_labels", training(true).training));
}

TEST_CASE("compact_labels: what stays says why") {
  CHECK(near_miss("(float[6,4] x) => (float[6,5] y) <float[4,5] w = "
                  "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}> { s = MatMul(x, w)  y = Relu(s) }") ==
        "'y' is no matmul");
  CHECK(near_miss("(float[6,4] x) => (float[6,5] y) <float[4,5] w = "
                  "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}> { y = Gemm <alpha = 0.5> (x, w) }") ==
        "'y' is not rows times one matrix");
  const Stages scaled = stages(
      "(float[6,4] x) => (float[2,3,5] y) <float[4,5] w = "
      "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, int64[3] deep = {2,3,5}>"
      " { s = Gemm <alpha = 0.5> (x, w)  y = Reshape(s, deep) }",
      training(true));
  CHECK(matched_in_near_misses(the_stage(scaled)) == "CrossEntropy y s");
  CHECK(near_miss("(float[6,4] x) => (float[6,5] y, float[6,5] z) <float[4,5] w = "
                  "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}> { y = MatMul(x, w)  z = Relu(y) }") ==
        "'y' is read by more than the loss, or has other rows");
}

}  // namespace trainscope::test
