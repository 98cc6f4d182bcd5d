// dead_code: removes nodes whose results nobody reads, and constants without readers.
#include <algorithm>
#include <vector>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"
#include "engine/passes/unread_stacks.h"

namespace trainscope {
namespace {

// Values that matter outside the graph: what is_output() says, states and what gradients are of.
std::vector<bool> outputs_of(const Graph& graph) {
  std::vector<bool> kept(graph.value_capacity(), false);
  auto keep = [&kept](ValueId v) {
    if (v != kNoValue) kept[static_cast<std::size_t>(v)] = true;
  };
  for (ValueId v : graph.outputs) keep(v);
  for (const Update& u : graph.updates) {
    keep(u.value);
    keep(u.state);
  }
  for (const GradientOf& g : graph.gradients) {
    keep(g.of);
    keep(g.gradient);
  }
  keep(graph.loss);
  return kept;
}

bool remove_dead_code(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const std::vector<bool> kept = outputs_of(graph);
  std::vector<NodeId> order = graph.order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    bool read = std::ranges::any_of(node.outputs, [&](ValueId v) {
      return v != kNoValue && (kept[static_cast<std::size_t>(v)] || !graph.value(v).uses.empty());
    });
    if (read) continue;
    rewriter.erase_dead(*id);
    context.count("nodes removed");
  }
  for (ValueId v : graph.values_of(ValueKind::kConstant)) {
    if (!graph.value(v).uses.empty() || kept[static_cast<std::size_t>(v)]) continue;
    rewriter.erase_dead(v);
    context.count("constants removed");
  }
  remove_unread_stacks(rewriter, context);
  return rewriter.changed();
}

}  // namespace

Pass dead_code_pass() {
  return {.name = "dead_code",
          .doc = "Remove nodes whose results nobody reads, and constants without readers.",
          .run = remove_dead_code,
          .in_bodies = true};
}

}  // namespace trainscope
