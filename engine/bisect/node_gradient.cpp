// A graph of one node with <y, w> for its loss, differentiated as any other.
#include "engine/bisect/node_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/bisect/node_alone.h"
#include "engine/bisect/observed.h"
#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

const Pass& pass_named(std::string_view name) {
  const std::span<const Pass> passes = default_passes();
  return *std::ranges::find(passes, name, &Pass::name);
}

// Of the finite elements.
double rms_of(const Tensor& tensor) {
  const auto count = static_cast<double>(std::max<std::int64_t>(1, tensor.elements()));
  return norm_of(finite_elements(tensor)) / std::sqrt(count);
}

}  // namespace

NodeGradient::NodeGradient(const Node& node, const OpTable& ops, const Evaluate& evaluate,
                           std::vector<SharedTensor> inputs, std::vector<SharedTensor> weights)
    : node_(node),
      ops_(ops),
      op_(*ops.find(node.op->name, node.op->domain)),
      evaluate_(evaluate),
      inputs_(std::move(inputs)),
      weights_(std::move(weights)),
      wanted_(inputs_.size(), false) {
  const bool has_rule = op_.gradient != nullptr && op_.differentiable == Differentiable::kYes &&
                        op_.determinism == Determinism::kAlways;
  const bool arrives = std::ranges::any_of(weights_, [](const auto& w) { return w != nullptr; });
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    wanted_[i] = has_rule && arrives && inputs_[i] != nullptr &&
                 inputs_[i]->dtype() == DType::kF64 && inputs_[i]->elements() > 0;
    differentiable_ = differentiable_ || wanted_[i];
  }
}

std::vector<SharedTensor> NodeGradient::by_rule() const {
  Graph graph;
  Builder b(graph, ops_);
  b.set_provenance({.sources = {}, .pass = "bisect"});
  Builder::Spec spec;
  spec.op = &op_;
  spec.name = node_.name;
  spec.attributes = node_.attributes;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr) {
      inputs.push_back(kNoValue);
    } else if (wanted_[i]) {
      Value value;
      value.name = fmt::format("input {}", i);
      value.type = inputs_[i]->type();
      value.kind = ValueKind::kParameter;
      value.data = inputs_[i];
      inputs.push_back(graph.add_value(std::move(value)));
    } else {
      inputs.push_back(b.constant(*inputs_[i]));
    }
  }
  spec.inputs = inputs;
  for (std::size_t k = 0; k < node_.outputs.size(); ++k) {
    spec.output_names.push_back(node_.outputs[k] == kNoValue ? "" : fmt::format("output {}", k));
  }
  const std::vector<ValueId> outputs = graph.node(b.add(std::move(spec))).outputs;
  ValueId loss = kNoValue;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == kNoValue || weights_[k] == nullptr) continue;
    const ValueId product = b("Mul", {outputs[k], b.constant(*weights_[k])});
    const ValueId sum = b("ReduceSum", {product}, {{"keepdims", std::int64_t{0}}});
    loss = loss == kNoValue ? sum : b("Add", {loss, sum});
  }
  graph.loss = loss;
  const TrainingOptions options{.mode = GraphMode::kGradients};
  const Pass& differentiate = pass_named("differentiate");
  PassContext context{
      .ops = ops_, .evaluate = &evaluate_, .options = options, .pass = differentiate.name};
  try {
    differentiate.run(graph, context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    return std::vector<SharedTensor>(inputs_.size());  // no gradient flows to any input
  }
  const ReferenceValues values = reference_run(graph, {}, evaluate_);
  std::vector<SharedTensor> result(inputs_.size());
  for (const GradientOf& gradient : graph.gradients) {
    const auto found = std::ranges::find(inputs, gradient.of);
    const auto i = static_cast<std::size_t>(found - inputs.begin());
    result[i] = values.by_id[static_cast<std::size_t>(gradient.gradient)];
  }
  return result;
}

double NodeGradient::weighted_sum(std::size_t i, const Tensor& input) const {
  std::vector<const Tensor*> inputs;
  for (const SharedTensor& tensor : inputs_) inputs.push_back(tensor.get());
  inputs[i] = &input;
  const std::vector<Tensor> outputs = computed_alone(op_, node_, inputs, evaluate_);
  double sum = 0.0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (weights_[k] == nullptr || outputs[k].dtype() != DType::kF64) continue;
    const std::span<const double> y = outputs[k].values<double>();
    const std::span<const double> w = weights_[k]->values<double>();
    for (std::size_t e = 0; e < y.size(); ++e) sum += y[e] * w[e];
  }
  return sum;
}

Tensor NodeGradient::moved(std::size_t i, const Tensor& direction, double step) const {
  const std::span<const double> u = direction.values<double>();
  Tensor result = *inputs_[i];
  for (std::size_t e = 0; e < u.size(); ++e) result.values<double>()[e] += step * u[e];
  return result;
}

std::optional<double> NodeGradient::by_difference(std::size_t i, const Tensor& direction) const {
  const double step = 1e-6 * std::max(rms_of(*inputs_[i]), 1e-3);
  const double here = weighted_sum(i, *inputs_[i]);
  const double ahead = (weighted_sum(i, moved(i, direction, step)) - here) / step;
  const double behind = (here - weighted_sum(i, moved(i, direction, -step))) / step;
  const double size = std::max(std::abs(ahead), std::abs(behind));
  const bool is_smooth = std::abs(ahead - behind) <= kDifferenceLimit * size;
  return std::isfinite(size) && is_smooth ? std::optional((ahead + behind) / 2.0) : std::nullopt;
}

}  // namespace trainscope
