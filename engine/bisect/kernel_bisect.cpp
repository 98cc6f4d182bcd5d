// The reference kernels' values flow from node to node; each other result is of these inputs.
#include "engine/bisect/kernel_bisect.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/bisect/defined_step.h"
#include "engine/bisect/limits.h"
#include "engine/bisect/node_alone.h"
#include "engine/bisect/observed.h"
#include "engine/bisect/typed_inputs.h"
#include "engine/core/error.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_choice.h"

namespace trainscope {
namespace {

constexpr double kKernelFactor = 16.0;
constexpr double kInexactNoise = 2e-6;

Coordinates numbers_of(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::kF64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

// Infinite where one alone is no number.
double distance_of_all(const Coordinates& x, const Coordinates& y) {
  double squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (!same) squares += (x[i] - y[i]) * (x[i] - y[i]);
  }
  return std::isnan(squares) ? HUGE_VAL : std::sqrt(squares);
}

class KernelBisecter {
 public:
  KernelBisecter(const Graph& graph, const KernelTable& kernels, KernelChoice choice, int threads)
      : graph_(graph),
        kernels_(kernels),
        choice_(choice),
        chosen_(evaluator(op_table(), kernels, {.kernels = choice, .threads = threads})),
        reference_(evaluator(op_table(), kernels, {.kernels = KernelChoice::kReference})) {}

  KernelBisect run(const std::map<std::string, Tensor>& inputs) {
    values_ = given_values(graph_, typed_for(graph_, inputs));
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      std::vector<SharedTensor> other = values_;
      compute_node(graph_, node, reference_, values_);
      if (node.op->is_view) continue;
      compute_node(graph_, node, chosen_, other);
      compare(node, other);
    }
    return std::move(result_);
  }

 private:
  // The node's outputs of the same inputs in f64; none where there is no such kernel.
  std::vector<Tensor> in_f64(const Node& node) const {
    std::vector<Tensor> wide;
    std::vector<const Tensor*> inputs;
    wide.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) {
        inputs.push_back(nullptr);
        continue;
      }
      const Tensor& tensor = *values_[static_cast<std::size_t>(input)];
      wide.push_back(is_float(tensor.dtype()) ? convert(tensor, DType::kF64) : tensor);
      inputs.push_back(&wide.back());
    }
    try {
      return computed_alone(*node.op, node, inputs, reference_);
    } catch (const Error&) {
      return {};
    }
  }

  void compare(const Node& node, const std::vector<SharedTensor>& other) {
    const std::vector<Tensor> truths = in_f64(node);
    ++result_.calls;
    result_.inexact += truths.empty() ? 1 : 0;
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      const auto at = static_cast<std::size_t>(node.outputs[k]);
      const Tensor* truth = k < truths.size() && truths[k].elements() == values_[at]->elements()
                                ? &truths[k]
                                : nullptr;
      judge(node, k, *other[at], *values_[at], truth);
    }
  }

  void judge(const Node& node, std::size_t output, const Tensor& chosen, const Tensor& reference,
             const Tensor* truth) {
    const Coordinates got = numbers_of(chosen);
    const Coordinates plain = numbers_of(reference);
    const Coordinates exact = truth == nullptr ? plain : numbers_of(*truth);
    const double norm =
        std::max(norm_of(finite_elements(truth == nullptr ? reference : *truth)), 1e-300);
    // What overflows in f32 alone does so for both.
    const bool plain_is_finite = std::isfinite(distance_of_all(plain, exact));
    const double error = distance_of_all(got, plain_is_finite ? exact : plain) / norm;
    const double noise =
        truth == nullptr || !plain_is_finite ? kInexactNoise : distance_of_all(plain, exact) / norm;
    const double limit = is_float(reference.dtype())
                             ? kKernelFactor * std::max(noise, rounding_of(reference.dtype()))
                             : 0.0;
    const Value& value = graph_.value(node.outputs[output]);
    if (limit > 0.0 && error / limit > result_.most) {
      result_.most = error / limit;
      result_.most_of = node.name;
    }
    if (error <= limit) return;
    result_.faults.push_back({.op = std::string(node.op->name),
                              .node = node.name,
                              .source = model_node(graph_, node).name,
                              .kernel = kernel_of(node),
                              .value = value.name,
                              .phase = node.phase,
                              .error = error,
                              .limit = limit});
  }

  // The first of those that may compute it; which one takes the call is `inspect --calls`' to say.
  std::string kernel_of(const Node& node) const {
    const NodeArgs args(graph_, node);
    const DType dtype = kernel_dtype(args->inputs, args->outputs);
    const std::vector<const Kernel*> names = kernels_for(kernels_, node.op->name, dtype, choice_);
    return names.empty() ? "" : std::string(names.front()->name);
  }

  const Graph& graph_;
  const KernelTable& kernels_;
  const KernelChoice choice_;
  const Evaluate chosen_;
  const Evaluate reference_;
  std::vector<SharedTensor> values_;
  KernelBisect result_;
};

}  // namespace

KernelBisect bisect_kernels(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                            const KernelTable& kernels, KernelChoice choice, int threads) {
  return KernelBisecter(graph, kernels, choice, threads).run(inputs);
}

}  // namespace trainscope
