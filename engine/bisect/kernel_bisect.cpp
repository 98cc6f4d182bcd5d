// The reference kernels' values flow from node to node; each other result is of these inputs.
#include "engine/bisect/kernel_bisect.h"

#include <utility>

#include "engine/bisect/call_judge.h"
#include "engine/bisect/defined_step.h"
#include "engine/bisect/typed_inputs.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_choice.h"

namespace trainscope {
namespace {

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
  std::vector<const Tensor*> inputs_of(const Node& node) const {
    std::vector<const Tensor*> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input == kNoValue ? nullptr
                                         : values_[static_cast<std::size_t>(input)].get());
    }
    return inputs;
  }

  void compare(const Node& node, const std::vector<SharedTensor>& other) {
    const std::vector<Tensor> truths = exact_results(node, inputs_of(node), reference_);
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
    const auto [error, limit] = judged_result(chosen, reference, truth);
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
