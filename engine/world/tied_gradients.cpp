// Sums of gradients whose partials come from different stages.
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
  return node.phase == Phase::kBackward && node.op->is_sum;
}

// The partials from the last to the first.
TiedGradient find_partials(const Graph& graph, ValueId sum) {
  TiedGradient tied{.sum = sum};
  std::vector<ValueId> open = {sum};
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    const NodeId producer = graph.value(v).producer;
    const bool inside = v == sum || graph.value(v).uses.size() == 1;
    if (!inside || !is_addition(graph, producer)) {
      tied.partials.push_back(v);
      continue;
    }
    tied.additions.push_back(producer);
    for (ValueId input : graph.node(producer).inputs) open.push_back(input);
  }
  return tied;
}

void separate_rows(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->scatters.empty() || node.inputs.size() < 3) continue;
    const std::vector<ValueId> inputs = node.inputs;
    const Attributes attributes = node.attributes;
    const std::string_view op = node.op->name;
    Builder& b = rewriter.before(id);
    const ValueId rows = b(op, {inputs[0], inputs[1]}, attributes);
    rewriter.replace_node(id, {b("Add", {inputs[2], rows})});
  }
}

// The node whose result v is or is a view of; kNoNode where that has other readers.
NodeId producer_behind_views(const Graph& graph, ValueId v) {
  NodeId id = graph.value(v).producer;
  while (id != kNoNode && graph.node(id).op->is_view) {
    const ValueId of = graph.node(id).inputs[0];
    if (graph.value(of).uses.size() != 1) return kNoNode;
    id = graph.value(of).producer;
  }
  return id;
}

// Where v is made by a matmul that adds to a sum, perhaps behind views: the addition in its place;
// else v.
ValueId separate_matmul(Rewriter& rewriter, ValueId v, std::vector<std::int64_t>& workspaces) {
  Graph& graph = rewriter.graph();
  const NodeId id = producer_behind_views(graph, v);
  if (id == kNoNode || graph.node(id).op->unadded_form.empty()) return v;
  const Node node = graph.node(id);  // copies: the graph grows
  const Shape shape = graph.value(v).type.shape;
  ValueId sum = node.inputs[static_cast<std::size_t>(node.op->added_input)];
  const NodeId view = graph.value(sum).producer;
  const bool viewed = view != kNoNode && graph.node(view).op->is_view;
  if (viewed && graph.value(graph.node(view).inputs[0]).type.shape == shape) {
    sum = graph.node(view).inputs[0];
  }
  Builder& b = rewriter.before(id);
  const ValueId matmul =
      b(node.op->unadded_form, {node.inputs[0], node.inputs[1]}, node.attributes);
  workspaces.resize(graph.node_capacity(), 0);
  workspaces[static_cast<std::size_t>(graph.value(matmul).producer)] =
      workspaces[static_cast<std::size_t>(id)];
  const ValueId both = b("Add", {b.reshape(sum, shape), b.reshape(matmul, shape)});
  NodeId last = graph.value(v).producer;
  rewriter.replace(v, both);
  while (last != id) {  // the views
    const NodeId next = graph.value(graph.node(last).inputs[0]).producer;
    rewriter.erase(last);
    last = next;
  }
  rewriter.erase(id);
  if (viewed && graph.value(graph.node(view).outputs[0]).uses.empty()) rewriter.erase(view);
  return both;
}

}  // namespace

void separate_sums(Graph& graph, const OpTable& ops, std::vector<std::int64_t>& workspaces) {
  Rewriter rewriter(graph, ops, "pipeline", nullptr);
  separate_rows(rewriter);
  std::vector<ValueId> open;
  std::unordered_set<ValueId> seen;
  for (const OptimizerNode& step : optimizer_nodes(graph)) {
    for (ValueId gradient : step.gradients) {
      const ValueId raw = raw_gradient(graph, gradient);
      if (seen.insert(raw).second) open.push_back(raw);
    }
  }
  while (!open.empty()) {
    const ValueId v = separate_matmul(rewriter, open.back(), workspaces);
    open.pop_back();
    const NodeId producer = graph.value(v).producer;
    if (!is_addition(graph, producer)) continue;
    for (ValueId input : graph.node(producer).inputs) {
      if (graph.value(input).uses.size() == 1) open.push_back(input);
    }
  }
}

std::vector<TiedGradient> find_tied_gradients(const Graph& graph, std::span<const int> stage_of) {
  std::vector<TiedGradient> found;
  std::unordered_set<ValueId> seen;
  for (const OptimizerNode& step : optimizer_nodes(graph)) {
    for (ValueId gradient : step.gradients) {
      const ValueId sum = raw_gradient(graph, gradient);
      if (!is_addition(graph, graph.value(sum).producer) || !seen.insert(sum).second) continue;
      TiedGradient tied = find_partials(graph, sum);
      std::ranges::reverse(tied.partials);
      bool known = true;  // on which stage each partial is made
      for (ValueId partial : tied.partials) {
        const NodeId producer = graph.value(partial).producer;
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
