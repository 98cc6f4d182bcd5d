// fold_constants: results known at compile time become constants.
#include <algorithm>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool known(const Graph& graph, const Node& node) {
  return std::ranges::all_of(node.outputs, [&graph](ValueId v) {
    return v == kNoValue || graph.value(v).data != nullptr;
  });
}

bool is_graph_output(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.outputs,
                             [&graph](ValueId v) { return v != kNoValue && graph.is_output(v); });
}

// The Builder computes what is known while it adds nodes; here only the readers move over.
bool fold_constants(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!known(graph, node) || is_graph_output(graph, node)) continue;
    rewriter.fold(id);
    context.count("folded");
  }
  return rewriter.changed();
}

}  // namespace

Pass fold_constants_pass() {
  return {.name = "fold_constants",
          .doc = "Replace results that are known at compile time (shapes, masks) by constants.",
          .run = fold_constants,
          .in_bodies = true};
}

}  // namespace trainscope
