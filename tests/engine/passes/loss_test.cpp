// loss: each kind by its number, labels as a new input, refusals.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr const char* kScores = "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }";

TrainingOptions with_loss(LossOptions loss) {
  TrainingOptions options;
  options.mode = GraphMode::kEvaluate;
  options.loss = std::move(loss);
  return options;
}

// The loss of scores x and labels.
double loss_of(std::string_view text, const LossOptions& loss, Tensor x, Tensor labels) {
  const Graph g = passed(graph(text), {"loss"}, with_loss(loss));
  CHECK_FALSE(changes(g, "loss", with_loss(loss)));
  const Tensors results = results_of(g, {{"x", std::move(x)}, {loss.labels, std::move(labels)}});
  return static_cast<double>(results.at("loss").values<float>()[0]);
}

Tensor ints(Shape shape, const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>(shape, values);
}

std::string refused(std::string_view text, LossOptions loss, ErrorCode code) {
  const std::optional<Error> error =
      error_of([&] { passed(graph(text), {"loss"}, with_loss(loss)); });
  REQUIRE(error.has_value());
  CHECK(error->code() == code);
  return error->message() + "\n" + error->hint();
}

}  // namespace

TEST_CASE("loss: cross entropy over the class axis, ignored labels left out of the mean") {
  const Tensor x = floats({2, 3}, {0, 0, 0, 5, 1, 1});
  CHECK(loss_of(kScores, {}, x, ints({2}, {2, -100})) == doctest::Approx(std::log(3.0)));
  CHECK(loss_of(kScores, {.ignore_index = 2}, x, ints({2}, {2, 0})) ==
        doctest::Approx(std::log(1.0 + 2.0 * std::exp(-4.0))));
  CHECK(loss_of(kScores, {.class_axis = 0, .ignore_index = 9}, x, ints({3}, {0, 9, 9})) ==
        doctest::Approx(std::log(1.0 + std::exp(5.0))));
}

TEST_CASE("loss: negative log-likelihood takes log-probabilities") {
  CHECK(loss_of(kScores, {.kind = LossKind::kNll}, floats({2, 3}, {-1, -2, -3, -4, -5, -6}),
                ints({2}, {1, 2})) == doctest::Approx(4.0));
}

TEST_CASE("loss: mean squared error and binary cross entropy take labels like the output") {
  CHECK(loss_of(kScores, {.kind = LossKind::kMse, .labels = "target"},
                floats({2, 3}, {0, 1, 2, 3, 4, 5}),
                floats({2, 3}, {0, 1, 2, 3, 4, 8})) == doctest::Approx(1.5));
  CHECK(loss_of(kScores, {.kind = LossKind::kBceWithLogits}, floats({2, 3}, {0, 0, 0, 0, 0, 0}),
                floats({2, 3}, {1, 0, 1, 0, 1, 0})) == doctest::Approx(std::log(2.0)));
}

TEST_CASE("loss: mean absolute error takes labels like the output") {
  CHECK(loss_of(kScores, {.kind = LossKind::kL1}, floats({2, 3}, {0, 1, 2, 3, 4, 5}),
                floats({2, 3}, {0, 1, 2, 3, 1, 8})) == doctest::Approx(1.0));
}

TEST_CASE("loss: class weights and label smoothing, as PyTorch defines them") {
  // Row 1 has log-probabilities of log 1/4, log 1/4, log 1/2; row 2 of log 1/3 three times.
  const float two = std::log(2.0F);
  const Tensor x = floats({2, 3}, {0, 0, two, 5, 5, 5});
  const double a = std::log(4.0);
  const double b = std::log(2.0);
  const double c = std::log(3.0);
  const LossOptions weighted{.class_weights = {1.0, 0.5, 3.0}};
  CHECK(loss_of(kScores, weighted, x, ints({2}, {2, 1})) ==
        doctest::Approx((3.0 * b + 0.5 * c) / 3.5));
  CHECK(loss_of(kScores, weighted, x, ints({2}, {-100, 0})) == doctest::Approx(c));
  const LossOptions smooth{.label_smoothing = 0.3};
  CHECK(loss_of(kScores, smooth, x, ints({2}, {2, 1})) ==
        doctest::Approx((0.7 * b + 0.1 * (a + a + b) + c) / 2.0));
  const LossOptions both{.class_weights = {1.0, 0.5, 3.0}, .label_smoothing = 0.3};
  const double first = 0.7 * 3.0 * b + 0.1 * (1.0 * a + 0.5 * a + 3.0 * b);
  const double second = 0.7 * 0.5 * c + 0.1 * 4.5 * c;
  CHECK(loss_of(kScores, both, x, ints({2}, {2, 1})) == doctest::Approx((first + second) / 3.5));
}

TEST_CASE("loss: the model's own scalar is the loss, without labels") {
  constexpr const char* kOwn =
      "(float[2,3] x) => (float[2,3] y, float[1,1] total) "
      "{ y = Exp(x)  s = ReduceSum <keepdims = 1> (y)  total = Neg(s) }";
  const LossOptions own{.kind = LossKind::kOutput, .output = "total"};
  const Graph g = passed(graph(kOwn), {"loss"}, with_loss(own));
  CHECK(g.inputs.size() == 1);
  CHECK(g.value(g.loss).type.shape == Shape{});
  const Tensors results = results_of(g, {{"x", floats({2, 3}, {0, 0, 0, 0, 0, 0})}});
  CHECK(results.at("loss").values<float>()[0] == doctest::Approx(-6.0));
  CHECK(contains(refused(kOwn, {.kind = LossKind::kOutput, .output = "y"}, ErrorCode::kUsage),
                 "the loss 'output:y' must be a scalar that the model computes"));
  CHECK(contains(refused(kOwn, {.kind = LossKind::kOutput, .output = "x"}, ErrorCode::kUsage),
                 "it is input f32[2,3]"));
}

TEST_CASE("loss: the labels are a new input of the right type") {
  const auto labels = [](std::string_view text, const LossOptions& loss) {
    const Graph g = passed(graph(text), {"loss"}, with_loss(loss));
    return g.value(g.inputs.back()).type;
  };
  constexpr const char* kSequence = "(float[2,5,3] x) => (float[2,5,3] y) { y = Exp(x) }";
  CHECK(labels(kSequence, {}) == TensorType{DType::kI64, Shape{2, 5}});
  CHECK(labels(kSequence, {.class_axis = 1}) == TensorType{DType::kI64, Shape{2, 3}});
  CHECK(labels(kSequence, {.kind = LossKind::kMse}) == TensorType{DType::kF32, Shape{2, 5, 3}});
}

TEST_CASE("loss: a named output is scored, by default the first") {
  constexpr const char* kTwo =
      "(float[2,3] x) => (float[2,3] a, float[2,4] b) <float[3,4] w = {1,1,1,1,1,1,1,1,1,1,1,1}>"
      "{ a = Exp(x)  b = MatMul(x, w) }";
  const auto scored = [&](const LossOptions& loss) {
    const Graph g = passed(graph(kTwo), {"loss"}, with_loss(loss));
    return g.value(g.node(g.value(g.loss).producer).inputs[0]).name;
  };
  CHECK(scored({}) == "a");
  CHECK(scored({.output = "b"}) == "b");
}

TEST_CASE("loss: a weighted sum, each term an output besides") {
  constexpr const char* kTwo =
      "(float[2,3] x, float[2,3] t) => (float[2,3] y, float own) "
      "{ y = Identity(x)  own = ReduceMean <keepdims = 0> (x) }";
  LossOptions sum{.kind = LossKind::kMse, .output = "y", .labels = "t"};
  sum.weight = 2.0;
  sum.further = {{.kind = LossKind::kOutput, .output = "own"},
                 {.kind = LossKind::kL1, .output = "y", .labels = "t"},
                 {.kind = LossKind::kMse, .output = "y", .labels = "other"}};
  sum.further[0].weight = -0.5;
  const Graph g = passed(graph(kTwo), {"loss"}, with_loss(sum));
  CHECK_FALSE(changes(g, "loss", with_loss(sum)));
  CHECK(g.inputs.size() == 3);  // t is there, and read twice
  const Tensors results = results_of(g, {{"x", floats({2, 3}, {0, 1, 2, 3, 4, 5})},
                                         {"t", floats({2, 3}, {0, 1, 2, 3, 4, 8})},
                                         {"other", floats({2, 3}, {0, 1, 2, 3, 4, 5})}});
  const auto number = [&](const std::string& name) {
    return static_cast<double>(results.at(name).values<float>()[0]);
  };
  CHECK(number("ai.trainscope.loss/mse(y)") == doctest::Approx(1.5));
  CHECK(number("ai.trainscope.loss/own") == doctest::Approx(2.5));
  CHECK(number("ai.trainscope.loss/l1(y)") == doctest::Approx(0.5));
  CHECK(number("ai.trainscope.loss/mse(y)_1") == doctest::Approx(0.0));
  CHECK(number("loss") == doctest::Approx(3.0 - 1.25 + 0.5));
}

TEST_CASE("loss: labels may be an input of the model that fits") {
  constexpr const char* kOwn = "(float[2,3] x, int64[2] kinds) => (float[2,3] y) { y = Exp(x) }";
  const Graph g = passed(graph(kOwn), {"loss"}, with_loss({.labels = "kinds"}));
  CHECK(g.inputs.size() == 2);
  const std::string wrong =
      refused(kOwn, {.kind = LossKind::kMse, .labels = "kinds"}, ErrorCode::kUsage);
  CHECK(contains(wrong, "already has a value named 'kinds'"));
  CHECK(contains(wrong, "it would have to be f32[2,3], it is i64[2]"));
  CHECK(contains(refused(kOwn, {.kind = LossKind::kMse, .labels = "y"}, ErrorCode::kUsage),
                 "already has a value named 'y'"));
}

TEST_CASE("loss: inference has none, a graph that has one keeps it") {
  TrainingOptions options;
  options.mode = GraphMode::kInference;
  CHECK_FALSE(changes(graph(kScores), "loss", options));
  Graph g = graph(kScores);
  g.loss = g.find("y");
  CHECK_FALSE(changes(g, "loss", with_loss({})));
}

TEST_CASE("loss: what does not fit is refused with what to do") {
  const std::string unknown = refused(kScores, {.output = "logits"}, ErrorCode::kUsage);
  CHECK(contains(unknown, "reads output 'logits', which the model does not have"));
  CHECK(contains(unknown, "outputs: y"));
  CHECK(contains(refused(kScores, {.labels = "x"}, ErrorCode::kUsage),
                 "already has a value named 'x': choose another name with labels=NAME"));
  CHECK(contains(refused("(float[3] x) => (float[3] y) { y = Exp(x) }", {}, ErrorCode::kUsage),
                 "cross_entropy needs an output of shape [N, ..., classes], 'y' is f32[3]"));
  CHECK(contains(refused("(float[3] x) => (int64[1] y) { y = Shape(x) }", {}, ErrorCode::kUsage),
                 "the loss reads 'y', which is i64[1], not float"));
  CHECK(contains(refused(kScores, {.class_axis = 2}, ErrorCode::kUsage),
                 "class_axis=2 of the loss is outside [-2, 2)"));
  CHECK(contains(refused(kScores, {.class_weights = {1, 2}}, ErrorCode::kUsage),
                 "the loss has 2 class weights, 'y' has 3 classes"));
}

}  // namespace trainscope::test
