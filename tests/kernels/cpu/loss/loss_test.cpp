// Losses against numbers worked out by hand, and their special cases.
#include "kernels/cpu/loss/loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/cpu/view_runner.h"

namespace trainscope::cpu {
namespace {

using Labels = std::vector<std::int64_t>;

KernelTable loss_table() {
  KernelTable table;
  add_loss(table);
  return table;
}

struct ClassLoss {
  double loss = 0.0;
  double count = 0.0;
  std::vector<double> log_sum_exp;
  std::vector<double> gradient;  // of the loss, times 2
};

// Cross entropy of [rows, 3] scores.
ClassLoss cross_entropy(std::vector<double> logits, Labels labels) {
  const KernelTable table = loss_table();
  const auto rows = static_cast<std::int64_t>(labels.size());
  const Params params = LossParams{.class_axis = 1, .ignore_index = -100};
  ClassLoss result;
  result.log_sum_exp.resize(labels.size());
  result.gradient.resize(logits.size());
  const TensorView x = view_of(logits, {rows, 3});
  const TensorView classes = view_of(labels, {rows});
  const TensorView log_sums = view_of(result.log_sum_exp, {rows});
  const TensorView count = scalar_view(result.count);
  run_on_views(table, {.op = "CrossEntropy",
                       .dtype = DType::kF64,
                       .params = params,
                       .inputs = {x, classes},
                       .outputs = {scalar_view(result.loss), log_sums, count}});
  double dloss = 2.0;
  run_on_views(table, {.op = "CrossEntropyGrad",
                       .dtype = DType::kF64,
                       .params = params,
                       .inputs = {scalar_view(dloss), x, classes, log_sums, count},
                       .outputs = {view_of(result.gradient, {rows, 3})}});
  return result;
}

}  // namespace

TEST_CASE("CrossEntropy: mean over the labels that are not ignored") {
  const double log2 = std::log(2.0);
  // softmax 1/4, 1/4, 1/2 in every row
  const std::vector<double> row = {0.0, 0.0, log2};
  std::vector<double> logits;
  for (int r = 0; r < 3; ++r) logits.insert(logits.end(), row.begin(), row.end());
  const ClassLoss result = cross_entropy(logits, {0, -100, 2});
  CHECK(result.count == 2.0);
  CHECK(result.loss == doctest::Approx(1.5 * log2).epsilon(1e-15));
  CHECK(result.log_sum_exp[0] == doctest::Approx(2.0 * log2).epsilon(1e-15));
  CHECK(result.log_sum_exp[1] == 0.0);  // not computed
  const std::vector<double> want = {-0.75, 0.25, 0.5, 0.0, 0.0, 0.0, 0.25, 0.25, -0.5};
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(result.gradient[i] == doctest::Approx(want[i]).epsilon(1e-15));
  }
}

TEST_CASE("CrossEntropy: large scores neither overflow nor lose the small probability") {
  const ClassLoss result = cross_entropy({1000.0, 0.0, -1000.0, 800.0, 800.0, 800.0}, {0, 1});
  CHECK(result.loss == doctest::Approx(std::log(3.0) / 2.0).epsilon(1e-12));
  CHECK(result.gradient[0] == doctest::Approx(0.0));
  const ClassLoss certain = cross_entropy({40.0, 0.0, 0.0}, {0});
  // 1 - p is 2 exp(-40): below the resolution of p itself.
  CHECK(certain.gradient[0] == doctest::Approx(-4.0 * std::exp(-40.0)).epsilon(1e-12));
}

TEST_CASE("CrossEntropy: all labels ignored is 0/0, and no gradient flows") {
  const ClassLoss result = cross_entropy({1.0, 2.0, 3.0}, {-100});
  CHECK(std::isnan(result.loss));
  CHECK(result.count == 0.0);
  CHECK(result.gradient == std::vector<double>{0.0, 0.0, 0.0});
}

TEST_CASE("CrossEntropy: a label outside the classes gives NaN, not a read outside the tensor") {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
  for (std::int64_t label : {std::int64_t{3}, std::int64_t{-1}, kFar, -kFar}) {
    const ClassLoss result = cross_entropy({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {0, label});
    CHECK(std::isnan(result.loss));
    CHECK(std::isfinite(result.gradient[0]));
    CHECK(std::isnan(result.gradient[4]));
  }
}

TEST_CASE("NegativeLogLikelihood: classes in the middle axis, int32 labels") {
  const KernelTable table = loss_table();
  std::vector<float> log_probs = {-1, -2, -3, -4, -5, -6, -7, -8};  // [2, 2, 2]
  std::vector<std::int32_t> labels = {0, 1, 7, 0};                  // [2, 2]
  const Params params = LossParams{.class_axis = 1, .ignore_index = 7};
  float loss = 0;
  float count = 0;
  const TensorView classes = view_of(labels, {2, 2});
  run_on_views(table, {.op = "NegativeLogLikelihood",
                       .dtype = DType::kF32,
                       .params = params,
                       .inputs = {view_of(log_probs, {2, 2, 2}), classes},
                       .outputs = {scalar_view(loss), scalar_view(count)}});
  CHECK(count == 3.0F);
  CHECK(loss == doctest::Approx((1.0 + 4.0 + 6.0) / 3.0));
  float dloss = 6;
  std::vector<float> gradient(8, 9.0F);
  run_on_views(table, {.op = "NegativeLogLikelihoodGrad",
                       .dtype = DType::kF32,
                       .params = params,
                       .inputs = {scalar_view(dloss), classes, scalar_view(count)},
                       .outputs = {view_of(gradient, {2, 2, 2})}});
  CHECK(gradient == std::vector<float>{-2, 0, 0, -2, 0, -2, 0, 0});
}

TEST_CASE("MeanSquaredError: mean of squares; a million equal elements lose no digits in f32") {
  const KernelTable table = loss_table();
  constexpr std::size_t kCount = 1'000'003;
  std::vector<float> x(kCount, 1.1F);
  std::vector<float> target(kCount, 1.0F);
  const Shape shape = {static_cast<std::int64_t>(kCount)};
  float loss[2] = {0, 0};
  for (int threads : {1, 2}) {
    run_on_views(table, {.op = "MeanSquaredError",
                         .dtype = DType::kF32,
                         .params = NoParams{},
                         .inputs = {view_of(x, shape), view_of(target, shape)},
                         .outputs = {scalar_view(loss[threads - 1])},
                         .threads = threads});
  }
  const double difference = static_cast<double>(1.1F) - 1.0;
  CHECK(loss[0] == static_cast<float>(difference * difference));
  CHECK(loss[0] == loss[1]);
}

TEST_CASE("BceWithLogits: stable at both ends, soft targets") {
  const KernelTable table = loss_table();
  std::vector<double> x = {0.0, 1000.0, -1000.0, 1000.0};
  std::vector<double> target = {0.5, 1.0, 0.0, 0.25};
  double loss = 0.0;
  const TensorView logits = view_of(x, {4});
  const TensorView targets = view_of(target, {4});
  run_on_views(table, {.op = "BceWithLogits",
                       .dtype = DType::kF64,
                       .params = NoParams{},
                       .inputs = {logits, targets},
                       .outputs = {scalar_view(loss)}});
  CHECK(loss == doctest::Approx((std::log(2.0) + 750.0) / 4.0).epsilon(1e-15));
  double dloss = 4.0;
  std::vector<double> gradient(4);
  run_on_views(table, {.op = "BceWithLogitsGrad",
                       .dtype = DType::kF64,
                       .params = NoParams{},
                       .inputs = {scalar_view(dloss), logits, targets},
                       .outputs = {view_of(gradient, {4})}});
  CHECK(gradient == std::vector<double>{0.0, 0.0, 0.0, 0.75});
}

}  // namespace trainscope::cpu
