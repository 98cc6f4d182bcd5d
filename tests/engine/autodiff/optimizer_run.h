// Steps of a small model's training graph, one after the other, in f64.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/well_known.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {

inline constexpr double kLimit = 1e-12;  // rounding of f64

// Two parameters, a matrix and a vector, with a squared error.
inline constexpr const char* kLinearText =
    "(float[N,3] x) => (float[N,2] y) <float[3,2] w = {0,0,0,0,0,0}, float[2] b = {0,0}>"
    "{ h = MatMul(x, w)  a = Add(h, b)  y = Tanh(a) }";

inline TrainingOptions training(OptimizerOptions optimizer) {
  TrainingOptions options;
  options.mode = GraphMode::kTrain;
  options.loss.kind = LossKind::kMse;
  options.optimizer = std::move(optimizer);
  options.keep_gradients = true;
  return options;
}

inline Graph step_graph(const TrainingOptions& options, std::int64_t rows = 4) {
  ImportOptions import{.dims = {{"N", rows}}, .float_type = DType::kF64};
  return passed(graph(kLinearText, import),
                {"loss", "decompose", "differentiate", "accumulate", "optimizer_step"}, options);
}

// Elements of a tensor as numbers that can be computed with.
inline std::vector<double> numbers(const Tensor& tensor) {
  const auto values = tensor.values<double>();
  return {values.begin(), values.end()};
}

// Feeds the results of a step into the next one.
struct Run {
  Graph graph;
  Tensors inputs;
  Tensors results;
  std::int64_t step = 0;

  explicit Run(Graph g) : graph(std::move(g)), inputs(random_inputs(graph, 5)) {
    for (ValueId v : graph.values_of(ValueKind::kState)) {
      inputs.emplace(graph.value(v).name, Tensor(graph.value(v).type));
    }
  }
  void one(double learning_rate) {
    inputs.insert_or_assign(kStepInput, Tensor::scalar<std::int64_t>(++step));
    inputs.insert_or_assign(kLearningRateInput, Tensor::scalar(learning_rate));
    results = results_of(graph, inputs);
  }
  void advance() {
    for (const Update& u : graph.updates) {
      const std::string& name = graph.value(u.state).name;
      inputs.insert_or_assign(name, results.at("next " + name));
    }
  }
  std::vector<double> value(const std::string& name) const { return numbers(inputs.at(name)); }
  std::vector<double> next(const std::string& name) const {
    return numbers(results.at("next " + name));
  }
  std::vector<double> gradient(const std::string& name) const {
    return numbers(results.at("d " + name));
  }
};

inline double worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace trainscope::test
