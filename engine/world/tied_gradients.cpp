// Sums of gradients whose summands come from different stages.
#include "engine/world/tied_gradients.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "engine/ir/rewriter.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

bool is_addition(const Graph& graph, NodeId id) {
  if (id == kNoNode) return false;
  const Node& node = graph.node(id);
  return node.phase == Phase::kBackward && (node.op->name == "Add" || node.op->name == "Sum");
}

// Parts from the last to the first.
TiedGradient take_apart(const Graph& graph, ValueId sum) {
  TiedGradient tied{.sum = sum};
  std::vector<ValueId> open = {sum};
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    const NodeId producer = graph.value(v).producer;
    const bool inside = v == sum || graph.value(v).uses.size() == 1;
    if (!inside || !is_addition(graph, producer)) {
      tied.parts.push_back(v);
      continue;
    }
    tied.additions.push_back(producer);
    for (ValueId input : graph.node(producer).inputs) open.push_back(input);
  }
  return tied;
}

}  // namespace

void separate_scattered_sums(Graph& graph, const OpTable& ops) {
  Rewriter rewriter(graph, ops, "pipeline", nullptr);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->name != "GatherGrad" || node.inputs.size() < 3) continue;
    const std::vector<ValueId> inputs = node.inputs;
    const Attributes attributes = node.attributes;
    Builder& b = rewriter.before(id);
    const ValueId rows = b("GatherGrad", {inputs[0], inputs[1]}, attributes);
    rewriter.replace_node(id, {b("Add", {inputs[2], rows})});
  }
}

std::vector<TiedGradient> find_tied_gradients(const Graph& graph, std::span<const int> stage_of) {
  std::vector<TiedGradient> found;
  std::unordered_set<ValueId> seen;
  for (const OptimizerNode& step : optimizer_nodes(graph)) {
    for (ValueId gradient : step.gradients) {
      const ValueId sum = raw_gradient(graph, gradient);
      if (!is_addition(graph, graph.value(sum).producer) || !seen.insert(sum).second) continue;
      TiedGradient tied = take_apart(graph, sum);
      std::ranges::reverse(tied.parts);
      bool known = true;  // on which stage each part is made
      for (ValueId part : tied.parts) {
        const NodeId producer = graph.value(part).producer;
        const int stage = producer == kNoNode ? -1 : stage_of[static_cast<std::size_t>(producer)];
        known = known && stage >= 0;
        tied.stages.push_back(stage);
      }
      std::ranges::sort(tied.stages);
      tied.stages.erase(std::unique(tied.stages.begin(), tied.stages.end()), tied.stages.end());
      if (!known || tied.stages.size() < 2) continue;
      if (gradient != sum) tied.kept.push_back(graph.value(gradient).producer);
      found.push_back(std::move(tied));
    }
  }
  return found;
}

}  // namespace trainscope
