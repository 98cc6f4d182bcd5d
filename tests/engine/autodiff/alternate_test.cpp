// Losses that alternate: each trains its own parameters, on what the updates before it left.
#include <doctest/doctest.h>

#include <set>

#include "engine/ir/well_known.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

// first = mean((x a - 1)^2), second = mean((x b - x a)^2): b learns what a has become.
constexpr const char* kTwoNets =
    "(double[4] x) => (double first, double second) <double a = {0.5}, double b = {2.0}>"
    "{ one = Constant <value = double {1.0}> ()  p = Mul(x, a)  e = Sub(p, one)  f = Mul(e, e)"
    "  first = ReduceMean <keepdims = 0> (f)  q = Mul(x, b)  d = Sub(q, p)  s = Mul(d, d)"
    "  second = ReduceMean <keepdims = 0> (s) }";

TrainingOptions alternating(std::vector<AlternatingLoss> losses) {
  TrainingOptions options;
  options.mode = GraphMode::kTrain;
  options.loss = {.kind = LossKind::kOutput, .output = losses.front().output};
  for (std::size_t i = 1; i < losses.size(); ++i) {
    options.loss.further.push_back({.kind = LossKind::kOutput, .output = losses[i].output});
  }
  options.alternation = std::move(losses);
  return options;
}

OptimizerOptions sgd() { return {.kind = OptimizerKind::kSgd}; }

double number(const Tensors& results, const std::string& name) {
  return results.at(name).values<double>()[0];
}

}  // namespace

TEST_CASE("alternate: the second loss sees the first one's update, and trains its group alone") {
  TrainingOptions options = alternating({{"first", "a", sgd()}, {"second", "b", sgd()}});
  options.keep_gradients = true;
  const Graph g = passed(graph(kTwoNets), {"loss", "differentiate", "optimizer_step"}, options);
  CHECK_FALSE(changes(g, "differentiate", options));
  CHECK(g.updates.size() == 2);
  const std::vector<double> x = {1.0, 2.0, -1.0, 0.5};
  const double rate = 0.1;
  const Tensors results = results_of(g, {{"x", doubles({4}, x)},
                                         {"a", doubles({}, {0.5})},
                                         {"b", doubles({}, {2.0})},
                                         {kLearningRateInput, Tensor::scalar(rate)},
                                         {kStepInput, Tensor::scalar<std::int64_t>(1)}});
  double first = 0.0;
  double slope = 0.0;
  for (const double v : x) {
    first += (v * 0.5 - 1.0) * (v * 0.5 - 1.0) / 4.0;
    slope += 2.0 * (v * 0.5 - 1.0) * v / 4.0;
  }
  const double a = 0.5 - rate * slope;
  double second = 0.0;
  double other = 0.0;
  for (const double v : x) {
    second += (v * 2.0 - v * a) * (v * 2.0 - v * a) / 4.0;
    other += 2.0 * (v * 2.0 - v * a) * v / 4.0;
  }
  CHECK(number(results, "ai.trainscope.loss/first") == doctest::Approx(first).epsilon(1e-12));
  CHECK(number(results, "ai.trainscope.loss/second") == doctest::Approx(second).epsilon(1e-12));
  CHECK(number(results, "loss") == doctest::Approx(first + second).epsilon(1e-12));
  CHECK(number(results, "next a") == doctest::Approx(a).epsilon(1e-12));
  CHECK(number(results, "next b") == doctest::Approx(2.0 - rate * other).epsilon(1e-12));
}

TEST_CASE("alternate: three turns, the third on both updates") {
  constexpr const char* kThree =
      "(double[2] x) => (double u, double v, double w)"
      " <double a = {0.5}, double b = {2.0}, double c = {1.0}>"
      "{ p = Mul(x, a)  pp = Mul(p, p)  u = ReduceMean <keepdims = 0> (pp)"
      "  q = Mul(p, b)  v = ReduceMean <keepdims = 0> (q)"
      "  r = Mul(q, c)  w = ReduceMean <keepdims = 0> (r) }";
  const TrainingOptions options =
      alternating({{"u", "a", sgd()}, {"v", "b", sgd()}, {"w", "c", sgd()}});
  const Graph g = passed(graph(kThree), {"loss", "differentiate"}, options);
  const Tensors results = results_of(g, {{"x", doubles({2}, {1.0, 3.0})},
                                         {"a", doubles({}, {0.5})},
                                         {"b", doubles({}, {2.0})},
                                         {"c", doubles({}, {1.0})},
                                         {kLearningRateInput, Tensor::scalar(0.1)},
                                         {kStepInput, Tensor::scalar<std::int64_t>(1)}});
  const double a = 0.5 - 0.1 * 2.0 * 0.5 * 5.0;  // the mean of x^2 is 5, that of x 2
  const double b = 2.0 - 0.1 * 2.0 * a;
  CHECK(number(results, "next a") == doctest::Approx(a).epsilon(1e-12));
  CHECK(number(results, "next b") == doctest::Approx(b).epsilon(1e-12));
  CHECK(number(results, "next c") == doctest::Approx(1.0 - 0.1 * 2.0 * a * b).epsilon(1e-12));
  CHECK(number(results, "ai.trainscope.loss/w") == doctest::Approx(2.0 * a * b).epsilon(1e-12));
}

TEST_CASE("alternate: a dropout that is computed again draws other numbers") {
  constexpr const char* kDropped =
      "(double[4] x) => (double first, double second) <double a = {0.5}, double b = {2.0}>"
      "{ p = Mul(x, a)  h = Dropout(p)  first = ReduceMean <keepdims = 0> (h)"
      "  q = Mul(h, b)  second = ReduceMean <keepdims = 0> (q) }";
  const TrainingOptions options = alternating({{"first", "a", sgd()}, {"second", "b", sgd()}});
  const Graph g = passed(graph(kDropped), {"training_form", "loss", "differentiate"}, options);
  std::set<std::int64_t> forward;
  std::set<std::int64_t> again;
  for (const NodeId id : g.order()) {
    const Node& node = g.node(id);
    if (!node.attributes.has("stream")) continue;
    std::set<std::int64_t>& streams = node.name.starts_with("again/") ? again : forward;
    streams.insert(node.attributes.integer("stream", -1));
  }
  CHECK(forward.size() == 1);
  CHECK(again.size() == 1);
  CHECK(forward != again);
}

TEST_CASE("alternate: what it does not go together with is named") {
  const auto refused = [](TrainingOptions options) {
    return refusal_of([&] { passed(graph(kTwoNets), {"loss", "differentiate"}, options); });
  };
  const std::vector<AlternatingLoss> both = {{"first", "a", sgd()}, {"second", "b", sgd()}};
  TrainingOptions options = alternating(both);
  options.micro_batches = 2;
  CHECK(contains(refused(options), "do not go together with accumulation"));
  options = alternating(both);
  options.optimizer.in_backward = true;
  CHECK(contains(refused(options), "the optimizer in the backward phase"));
  CHECK(contains(refused(alternating({{"first", "b", sgd()}, {"second", "a", sgd()}})),
                 "no parameter of 'b' influences the loss 'first'"));
  CHECK(contains(refused(alternating({{"first", "a", sgd()}, {"second", "a", sgd()}})),
                 "parameter 'a' is in several of the groups that alternate"));
}

}  // namespace trainscope::test
