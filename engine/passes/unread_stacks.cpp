// The same loop with fewer outputs.
#include "engine/passes/unread_stacks.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/ops/control/loop.h"

namespace trainscope {
namespace {

bool is_loop(const Node& node) { return is_op(node, kTrainscopeDomain, "Loop"); }

// The outputs that stay, by their places.
std::vector<std::size_t> read_outputs(const Graph& graph, const Node& node) {
  const LoopForm form(node.attributes);
  std::vector<std::size_t> read;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const bool is_stacked = form.trips().is_stacked(static_cast<int>(i));
    const ValueId v = node.outputs[i];
    const bool is_read = v != kNoValue && (!graph.value(v).uses.empty() || graph.is_output(v));
    if (!is_stacked || is_read) read.push_back(i);
  }
  return read;
}

void keep_outputs(Rewriter& rewriter, NodeId id, const std::vector<std::size_t>& kept) {
  const Node node = rewriter.graph().node(id);  // a copy: the graph's storage grows
  Graph body = *node.attributes.graph("body");
  std::vector<ValueId> outputs;
  for (std::size_t i : kept) outputs.push_back(body.outputs[i]);
  body.release_outputs(std::vector<ValueId>(body.outputs));
  body.outputs = std::move(outputs);
  Attributes attributes = node.attributes;
  attributes.set("body", std::make_shared<const Graph>(std::move(body)));
  const std::vector<ValueId> made = rewriter.before(id).multi(
      node.op->name, node.inputs, static_cast<int>(kept.size()), std::move(attributes));
  std::vector<ValueId> results(node.outputs.size(), made.front());  // nobody reads the others
  for (std::size_t k = 0; k < kept.size(); ++k) results[kept[k]] = made[k];
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i] == kNoValue) results[i] = kNoValue;
  }
  rewriter.replace_node(id, results);
}

}  // namespace

void remove_unread_stacks(Rewriter& rewriter, PassContext& context) {
  if (context.awaits_gradients(rewriter.graph())) return;
  rewriter.set_rule("unread stacks", "What nobody reads of the trips of a loop is not kept.");
  for (const NodeId id : rewriter.graph().order()) {
    const Node& node = std::as_const(rewriter).graph().node(id);
    if (!is_loop(node)) continue;
    const std::vector<std::size_t> kept = read_outputs(rewriter.graph(), node);
    if (kept.size() == node.outputs.size() || kept.empty()) continue;
    context.count("unread stacks", static_cast<std::int64_t>(node.outputs.size() - kept.size()));
    keep_outputs(rewriter, id, kept);
  }
}

}  // namespace trainscope
