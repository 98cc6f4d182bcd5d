// Gradients where differences say nothing: at kinks, for equal elements, at zeros and infinities.
// The expected numbers are PyTorch's.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/backward.h"

namespace trainscope::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Convention {
  std::string_view op;
  Attributes attributes;
  std::vector<Floats> inputs;     // vectors; one number is a scalar; none: left out
  std::vector<Floats> gradients;  // of the sum of the first output, by input
};

Tensor tensor_of(const Floats& numbers) {
  const Shape shape = numbers.size() == 1 ? Shape{} : Shape{std::ssize(numbers)};
  return Tensor::of<double>(shape, numbers);
}

// The gradients of the sum of the node's first output.
std::vector<Floats> gradients_of(const Convention& c) {
  const OpTable ops = standard_ops();
  const Evaluate evaluate = evaluator(ops, cpu_kernels());
  Graph graph;
  Builder b(graph, ops);
  b.set_provenance({.sources = {}, .pass = "test"});
  std::map<std::string, Tensor> data;
  std::vector<ValueId> inputs;
  for (const Floats& numbers : c.inputs) {
    const std::string name = fmt::format("x{}", inputs.size());
    if (numbers.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    data.emplace(name, tensor_of(numbers));
    inputs.push_back(b.input(name, data.at(name).type()));
  }
  const ValueId y = b(c.op, inputs, c.attributes);
  const Shape shape = b.shape(y);
  const ValueId dy =
      b("ConstantOfShape", {b.ints(Ints(shape.span().begin(), shape.span().end()))},
        {{"value",
          std::make_shared<const Tensor>(Tensor::of<double>(Shape{1}, std::vector<double>{1.0}))}});
  std::vector<bool> wanted;
  for (ValueId input : inputs) wanted.push_back(input != kNoValue);
  const std::vector<ValueId> dx = backward(b, graph.value(y).producer, {dy}, wanted);
  const ReferenceValues values = reference_run(graph, data, evaluate);
  std::vector<Floats> gradients;
  for (ValueId v : dx) {
    gradients.emplace_back();
    if (v == kNoValue) continue;
    const auto numbers = values.at(v).values<double>();
    gradients.back().assign(numbers.begin(), numbers.end());
  }
  return gradients;
}

void check_conventions(const std::vector<Convention>& conventions) {
  for (const Convention& c : conventions) {
    const std::vector<Floats> got = gradients_of(c);
    REQUIRE(got.size() == c.gradients.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(c.op, " {", attributes_text(c.attributes), "}, input ", i, ": ",
           fmt::format("{}", fmt::join(got[i], " ")));
      REQUIRE(got[i].size() == c.gradients[i].size());
      for (std::size_t k = 0; k < got[i].size(); ++k) {
        CHECK(got[i][k] == doctest::Approx(c.gradients[i][k]).epsilon(1e-12));
      }
    }
  }
}

}  // namespace

TEST_CASE("conventions: equal elements share the gradient of Max and Min") {
  check_conventions({
      {"Max", {}, {{1, 2, 3}, {2, 2, 2}}, {{0, 0.5, 1}, {1, 0.5, 0}}},
      {"Min", {}, {{1, 2, 3}, {2, 2, 2}}, {{1, 0.5, 0}, {0, 0.5, 1}}},
      {"Max", {}, {{5, 5}, {5, 1}, {5, 9}}, {{1.0 / 3, 0}, {1.0 / 3, 0}, {1.0 / 3, 1}}},
      {"Max", {}, {{-kInfinity, 1}, {-kInfinity, -kInfinity}}, {{0.5, 1}, {0.5, 0}}},
      {"ReduceMax", {}, {{3, 1, 3, 3, 0}}, {{1.0 / 3, 0, 1.0 / 3, 1.0 / 3, 0}}},
      {"ReduceMin", {}, {{3, 1, 3, 1}}, {{0, 0.5, 0, 0.5}}},
  });
}

TEST_CASE("conventions: Clip passes the gradient on its limits on") {
  check_conventions({
      {"Clip", {}, {{0, 1, 2, 3, 4}, {1}, {3}}, {{0, 1, 1, 1, 0}, {1}, {1}}},
      {"Clip", {}, {{0, 1, 2}, {1}}, {{0, 1, 1}, {1}}},
      {"Clip", {}, {{0, 1, 2}, {}, {1}}, {{1, 1, 0}, {}, {1}}},
      // Where the limits cross everything is the upper one's.
      {"Clip", {}, {{0, 2, 4}, {3}, {1}}, {{0, 0, 0}, {0}, {3}}},
  });
}

TEST_CASE("conventions: kinks of activations") {
  check_conventions({
      {"LeakyRelu", {{"alpha", 0.25}}, {{-1, 0, 1}}, {{0.25, 0.25, 1}}},
      {"LeakyRelu", {{"alpha", -0.25}}, {{-1, 0, 1}}, {{-0.25, -0.25, 1}}},
      {"PRelu", {}, {{-2, 0, 2}, {0.25, 0.25, 0.25}}, {{0.25, 0.25, 1}, {-2, 0, 0}}},
      {"Elu", {{"alpha", 2.0}}, {{-1, 0, 1}}, {{2 * std::exp(-1.0), 2, 1}}},
      {"Elu", {{"alpha", -2.0}}, {{-1, 0, 1}}, {{-2 * std::exp(-1.0), -2, 1}}},
      {"ThresholdedRelu", {{"alpha", 1.0}}, {{0, 1, 2}}, {{0, 0, 1}}},
      {"Shrink", {{"lambd", 1.0}, {"bias", 1.0}}, {{-2, -1, 0, 1, 2}}, {{1, 0, 0, 0, 1}}},
      {"Softsign", {}, {{-1, 0, 3}}, {{0.25, 1, 0.0625}}},
      {"Softplus", {}, {{-800, 0, 800}}, {{0, 0.5, 1}}},
      {"Abs", {}, {{-2, 0, 2}}, {{-1, 0, 1}}},
  });
}

TEST_CASE("conventions: reductions at zeros and infinities") {
  check_conventions({
      {"ReduceL1", {}, {{-2, 0, 2}}, {{-1, 0, 1}}},
      {"ReduceL2", {}, {{0, 0}}, {{0, 0}}},
      {"ReduceL2", {}, {{3, 4}}, {{0.6, 0.8}}},
      {"ReduceProd", {}, {{2, 3, 4}}, {{12, 8, 6}}},
      {"ReduceProd", {}, {{2, 0, 4}}, {{0, 8, 0}}},
      {"ReduceProd", {}, {{2, 0, 0}}, {{0, 0, 0}}},
      {"ReduceLogSumExp", {}, {{-kInfinity, 1, 1}}, {{0, 0.5, 0.5}}},
      {"ReduceLogSumExp", {}, {{-1000, 1000}}, {{0, 1}}},
  });
}

}  // namespace trainscope::test
