// Counting of labels that the highest score names, and accuracy in evaluations.
#include "engine/train/accuracy.h"

#include <doctest/doctest.h>

#include <array>

#include "engine/session.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

LabelCount count(const Tensor& scores, const Tensor& labels, std::int64_t axis) {
  return count_correct(scores.view(), labels.view(),
                       {.output = "y", .labels = "labels", .class_axis = axis});
}

}  // namespace

TEST_CASE("accuracy: the highest score names the class, the first of ties; ignored labels do not") {
  const Tensor scores = floats({4, 3}, {0, 2, 1, 5, 5, 1, -1, -2, -3, 0, 0, 9});
  const Tensor labels = Tensor::of<std::int64_t>({4}, std::array<std::int64_t, 4>{1, 0, 2, -100});
  const LabelCount counted = count(scores, labels, -1);
  CHECK(counted.labels == 3);
  CHECK(counted.correct == 2);
}

TEST_CASE("accuracy: classes on an axis in the middle, 32-bit labels, f64 scores") {
  // [2, 2 classes, 3]
  const std::array<double, 12> values = {1, 2, 3, 3, 2.5, 1, 0, 0, 0, 1, -1, 1};
  const Tensor scores = Tensor::of<double>({2, 2, 3}, values);
  const std::array<std::int32_t, 6> wanted = {1, 1, 0, 1, 0, 0};
  const LabelCount counted = count(scores, Tensor::of<std::int32_t>({2, 3}, wanted), 1);
  CHECK(counted.labels == 6);
  CHECK(counted.correct == 5);
}

TEST_CASE("accuracy: an evaluation counts over its batches, where the scores are an output") {
  const OnnxModel onnx =
      model("(float[2,2] x) => (float[2,2] y) <float[1] w = {1}> { y = Mul(x, w) }");
  Session session(onnx, {});
  Executor& executor = session.executor(GraphMode::kEvaluate);
  Batch batch;
  batch.tensors = {{"x", floats({2, 2}, {1, 0, 3, 2})},
                   {"labels", Tensor::of<std::int64_t>({2}, std::array<std::int64_t, 2>{0, 1})}};
  batch.examples = batch.loss_terms = 2;
  struct Twice final : BatchSource {
    const Batch& batch;
    int left = 2;
    explicit Twice(const Batch& b) : batch(b) {}
    const Batch* next() override { return left-- > 0 ? &batch : nullptr; }
  };
  const auto accuracy = [&](const std::optional<ScoredClasses>& classes) {
    Twice batches(batch);
    return evaluate(executor, batches, classes).accuracy();
  };
  CHECK(accuracy(ScoredClasses{.output = "y", .labels = "labels"}) == 0.5);
  CHECK(!accuracy(ScoredClasses{.output = "x", .labels = "labels"}).has_value());
  CHECK(!accuracy(ScoredClasses{.output = "none", .labels = "labels"}).has_value());
  CHECK(!accuracy(std::nullopt).has_value());
}

}  // namespace trainscope::test
