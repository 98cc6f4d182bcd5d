// Models of a few nodes, drawn inputs, central differences.
#include "tests/engine/check/model_probe.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/builder.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr double kStep = 1e-4;
constexpr std::uint64_t kSeed = 19;
constexpr double kDifferenceBound = 1e-6;  // relative, of all probed elements
constexpr double kSubsetBound = 1e-12;     // of a gradient when fewer inputs are asked for

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0.0;
  const std::span<const double> x = a.values<double>();
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * b.values<double>()[i];
  return sum;
}

// |a - b|^2
double squared_distance(const Tensor& a, const Tensor& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.values<double>().size(); ++i) {
    sum += std::pow(a.values<double>()[i] - b.values<double>()[i], 2.0);
  }
  return sum;
}

Tensor drawn(const TensorType& type) {
  static std::uint64_t stream = 0;
  return random_tensor(type, kSeed, ++stream);
}

}  // namespace

std::string text_of(const ModelCase& c) {
  const std::string known = c.known.empty() ? "" : fmt::format("<{}>", c.known);
  return fmt::format("<ir_version: 8, opset_import: [{}]>\ng ({}) => ({}) {} {{ {} }}", c.opsets,
                     c.inputs, c.outputs, known, c.node);
}

ModelProbe::ModelProbe(const ModelCase& model_case)
    : evaluate_(evaluator(op_table(), cpu_kernels(), {.kernels = KernelChoice::kReference})),
      model_(OnnxModel::parse_text(text_of(model_case))) {
  graph_ = to_graph(model_, op_table(), {.float_type = DType::kF64, .evaluate = &evaluate_});
  Builder b(graph_, op_table());
  b.set_evaluate(&evaluate_);
  b.set_provenance({.sources = {}, .pass = "test"});
  for (const ModelTensor& output : model_.outputs()) {
    const ValueId y = graph_.find(output.name);
    if (!is_float(b.type(y).dtype)) continue;
    const std::string name = "cotangent of " + output.name;
    const ValueId cotangent = b.input(name, b.type(y));
    data_.emplace(name, drawn(b.type(y)));
    const ValueId product = b("Mul", {y, cotangent});
    const ValueId sum = b("ReduceSum", {product}, {{"keepdims", std::int64_t{0}}});
    graph_.loss = graph_.loss == kNoValue ? sum : b("Add", {graph_.loss, sum});
  }
  graph_.outputs = {graph_.loss};
  for (ValueId v : graph_.values_of(ValueKind::kInput)) add_data(v);
}

std::vector<std::string> ModelProbe::float_inputs() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : data_) {
    const bool cotangent = name.starts_with("cotangent");
    if (!cotangent && tensor.dtype() == DType::kF64) names.push_back(name);
  }
  return names;
}

TensorsByName ModelProbe::gradients(const std::vector<std::string>& inputs) const {
  TrainingOptions training;
  training.mode = GraphMode::kGradients;
  training.keep_gradients = true;
  training.gradient_of = inputs;
  const PassContext context{
      .ops = op_table(), .evaluate = &evaluate_, .options = training, .pass = {}, .counters = {}};
  const Stages stages = run_passes(Graph(graph_), default_passes(), context,
                                   {.disabled = {"training_form"}, .stop_after = {}});
  const Graph& graph = stages.back().graph;
  const ReferenceValues values = reference_run(graph, bound_in(graph), evaluate_);
  TensorsByName gradients;
  for (const std::string& input : inputs) gradients.emplace(input, data_.at(input).type());
  for (const GradientOf& each : graph.gradients) {
    const auto wanted = gradients.find(graph.value(each.of).name);
    if (wanted != gradients.end()) wanted->second = values.at(each.gradient);
  }
  return gradients;
}

double ModelProbe::error(const std::string& input, const Tensor& gradient) const {
  Tensor differences(gradient.type());
  TensorsByName data = data_;
  std::span<double> x = data.at(input).values<double>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i];
    x[i] = before + kStep;
    const double above = loss(data);
    x[i] = before - kStep;
    const double below = loss(data);
    x[i] = before;
    differences.values<double>()[i] = (above - below) / (2.0 * kStep);
  }
  return relative_difference(gradient, differences);
}

void ModelProbe::add_data(ValueId v) {
  const Value& value = graph_.value(v);
  if (!data_.contains(value.name)) data_.emplace(value.name, drawn(value.type));
}

double ModelProbe::loss(const TensorsByName& data) const {
  return reference_run(graph_, data, evaluate_).at(graph_.loss).values<double>()[0];
}

TensorsByName ModelProbe::bound_in(const Graph& graph) const {
  TensorsByName bound;
  for (const auto& [name, tensor] : data_) {
    if (graph.find(name) != kNoValue) bound.emplace(name, tensor);
  }
  return bound;
}

double relative_difference(const Tensor& a, const Tensor& b) {
  return std::sqrt(squared_distance(a, b) / std::max(1e-12, dot(b, b)));
}

void check_gradients(
    std::span<const ModelCase> cases,
    const std::function<std::vector<InputSubset>(const InputSubset& all)>& subsets_of) {
  double worst = 0.0;
  int checked = 0;
  int subsets = 0;
  for (const ModelCase& each : cases) {
    CAPTURE(each.name);
    const ModelProbe probe(each);
    const InputSubset inputs = probe.float_inputs();
    CHECK_FALSE(inputs.empty());
    const TensorsByName gradients = probe.gradients(inputs);
    for (const auto& [input, gradient] : gradients) {
      CAPTURE(input);
      const double error = probe.error(input, gradient);
      CHECK(error <= kDifferenceBound);
      worst = std::max(worst, error);
      ++checked;
    }
    for (const InputSubset& some : subsets_of(inputs)) {
      CAPTURE(some);
      for (const auto& [input, gradient] : probe.gradients(some)) {
        CHECK(relative_difference(gradient, gradients.at(input)) <= kSubsetBound);
      }
      ++subsets;
    }
  }
  MESSAGE(fmt::format("{} gradients of {} models, largest relative error {:.1e}; {} subsets",
                      checked, cases.size(), worst, subsets));
}

}  // namespace trainscope::test
