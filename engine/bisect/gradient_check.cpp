// The step's forward values and gradients once, then each node by itself.
#include "engine/bisect/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/bisect/contributions.h"
#include "engine/bisect/node_gradient.h"
#include "engine/bisect/observed.h"
#include "engine/bisect/typed_inputs.h"
#include "engine/exec/reference.h"

namespace trainscope {
namespace {

using profiler::TraceKind;
using profiler::TracePhase;

constexpr double kSumLimit = 1e-9;          // relative: both are f64
constexpr double kOfStepGradients = 1e-14;  // of the norm of all, where gradients vanish

// Elements +1 and -1 times a number that differs from place to place.
Tensor direction_for(const TensorType& type) {
  Tensor result(type);
  std::uint64_t h = 0x9E3779B97F4A7C15U;
  for (double& x : result.values<double>()) {
    h = (h ^ (h >> 29U)) * 0xD6E8FEB86659FD93U + 0x9E3779B97F4A7C15U;
    x = (static_cast<double>(h >> 11U) * 0x1p-53 + 0.5) * ((h & 1U) == 0 ? 1.0 : -1.0);
  }
  return result;
}

Coordinates elements_of(const Tensor& tensor) {
  return {tensor.values<double>().begin(), tensor.values<double>().end()};
}

class GradientChecker {
 public:
  GradientChecker(const UnfusedStep& step, const Graph& graph, const OpTable& ops,
                  const std::map<std::string, Tensor>& inputs)
      : step_(step),
        graph_(graph),
        ops_(ops),
        values_(reference_run(graph, typed_for(graph, inputs), step.evaluate())) {
    for (const ValueId id : graph_.live_values()) {
      for (const Serial of : graph_.value(id).gradient_of) gradient_of_.emplace(of, id);
    }
    double squares = 0.0;
    for (const GradientOf& gradient : graph_.gradients) {
      const double norm = norm_of(elements_of(values_.at(gradient.gradient)));
      squares += norm * norm;
    }
    all_ = std::sqrt(squares);
  }

  GradientCheck run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : std::views::reverse(order)) {
      const Node& node = graph_.node(id);
      if (node.phase != Phase::kForward) continue;
      for (const ValueId out : node.outputs) check_sum(out);
      check_node(node);
    }
    for (const ValueId id : graph_.values_of(ValueKind::kParameter)) check_sum(id);
    return std::move(result_);
  }

 private:
  // What the readers of a value give to its gradient.
  struct Parts {
    std::vector<NamedNode> readers;
    std::vector<Coordinates> elements;
  };

  SharedTensor gradient(ValueId value) const {
    if (value == kNoValue) return nullptr;
    const auto found = gradient_of_.find(graph_.value(value).serial);
    if (found == gradient_of_.end()) return nullptr;
    const SharedTensor& tensor = values_.by_id[static_cast<std::size_t>(found->second)];
    return tensor->dtype() == DType::kF64 ? tensor : nullptr;
  }

  bool is_seed(ValueId value) const { return value == graph_.loss; }

  void check_node(const Node& node) {
    std::vector<SharedTensor> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input == kNoValue ? nullptr
                                         : values_.by_id[static_cast<std::size_t>(input)]);
    }
    std::vector<SharedTensor> weights;
    for (const ValueId out : node.outputs) {
      SharedTensor weight = gradient(out);
      if (weight == nullptr && out != kNoValue && is_seed(out)) {
        Tensor one(graph_.value(out).type);
        one.values<double>()[0] = 1.0;
        weight = std::make_shared<const Tensor>(std::move(one));
      }
      weights.push_back(std::move(weight));
    }
    const bool arrives = std::ranges::any_of(weights, [](const auto& w) { return w != nullptr; });
    const NodeGradient alone(node, ops_, step_.evaluate(), std::move(inputs), std::move(weights));
    if (!alone.is_differentiable()) {
      if (arrives) untested_.insert(node.inputs.begin(), node.inputs.end());
      return;
    }
    const std::vector<SharedTensor> gradients = alone.by_rule();
    ++result_.nodes;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!alone.is_wanted(i)) continue;
      add_contribution(node, node.inputs[i], gradients[i]);
      test_direction(alone, node, i, gradients[i]);
    }
  }

  void add_contribution(const Node& node, ValueId to, const SharedTensor& part) {
    if (part == nullptr) return;
    Parts& parts = parts_[to];
    parts.readers.push_back(model_node(graph_, node));
    parts.elements.push_back(elements_of(*part));
  }

  void test_direction(const NodeGradient& alone, const Node& node, std::size_t i,
                      const SharedTensor& by_rule) {
    const Tensor direction = direction_for(graph_.value(node.inputs[i]).type);
    const std::optional<double> difference = alone.by_difference(i, direction);
    if (!difference) {
      ++result_.kinks;
      return;
    }
    const Coordinates u = elements_of(direction);
    const Coordinates g = by_rule ? elements_of(*by_rule) : Coordinates(u.size(), 0.0);
    const double expected = inner_product(g, u);
    const double count = std::sqrt(static_cast<double>(std::max<std::size_t>(1, u.size())));
    const double size = std::max({std::abs(*difference), std::abs(expected),
                                  norm_of(g) * norm_of(u) / count, kOfStepGradients * all_});
    const double error = std::abs(*difference - expected) / std::max(size, 1e-300);
    if (error <= kDifferenceLimit) return;
    LocalFault fault = fault_at(node.inputs[i], model_node(graph_, node));
    fault.cause = fmt::format(
        "its gradient by input {} is {:.6g} in a direction in which a difference gives {:.6g}", i,
        expected, *difference);
    fault.error = error;
    fault.limit = kDifferenceLimit;
    result_.faults.push_back(std::move(fault));
  }

  LocalFault fault_at(ValueId value, NamedNode node) const {
    const Value& of = graph_.value(value);
    const TraceKind kind =
        of.kind == ValueKind::kParameter ? TraceKind::kGradient : TraceKind::kActivationGradient;
    return {.kind = FaultKind::kOp,
            .step = 1,
            .phase = TracePhase::kBackward,
            .key = fmt::format("{}:{}", name_of(kind), of.name),
            .op = std::move(node.op),
            .node = std::move(node.name),
            .cause = {},
            .by_elements = true,
            .among = {}};
  }

  // A value's gradient in the step against what its readers give: all of them came before.
  void check_sum(ValueId value) {
    if (value == kNoValue || untested_.contains(value)) return;
    const SharedTensor has = gradient(value);
    const auto parts = parts_.find(value);
    if (has == nullptr || parts == parts_.end()) return;
    const Coordinates seen = elements_of(*has);
    Coordinates sum(seen.size(), 0.0);
    for (const Coordinates& part : parts->second.elements) {
      if (part.size() != sum.size()) return;
      sum = sum_of(sum, 1.0, part);
    }
    ++result_.sums;
    const double norm = std::max(norm_of(seen), norm_of(sum));
    const double error = distance(seen, sum);
    const double limit = kSumLimit * norm + kOfStepGradients * all_;
    if (error <= limit) return;
    add_sum_fault(value, seen, sum, parts->second, error / norm, limit / norm);
  }

  void add_sum_fault(ValueId value, const Coordinates& seen, const Coordinates& sum,
                     const Parts& parts, double error, double limit) {
    const Coordinates wrong = sum_of(seen, -1.0, sum);
    const std::optional<Explanation> best = explained_by(wrong, parts.elements);
    const NamedNode& reader = parts.readers[best ? best->part : 0];
    LocalFault fault = fault_at(value, reader);
    fault.kind = FaultKind::kGraph;
    fault.cause = "it is not the sum of what its readers give";
    if (best && best->left <= kLeft * norm_of(wrong)) {
      ContributionFault explained = contribution_fault(reader, 1.0 + best->factor);
      fault.kind = explained.kind;
      fault.cause = std::move(explained.cause);
    }
    fault.error = error;
    fault.limit = limit;
    result_.faults.push_back(std::move(fault));
  }

  const UnfusedStep& step_;
  const Graph& graph_;
  const OpTable& ops_;
  const ReferenceValues values_;
  std::unordered_map<Serial, ValueId> gradient_of_;
  std::map<ValueId, Parts> parts_;
  // Values with a reader that gives them a gradient which no test here makes again: it draws random
  // numbers, or passes straight through a step.
  std::set<ValueId> untested_;
  double all_ = 0.0;
  GradientCheck result_;
};

}  // namespace

GradientCheck check_gradients(const UnfusedStep& step, const Graph& graph, const OpTable& ops,
                              const std::map<std::string, Tensor>& inputs) {
  return GradientChecker(step, graph, ops, inputs).run();
}

}  // namespace trainscope
