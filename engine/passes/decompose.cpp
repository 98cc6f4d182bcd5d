// decompose: replaces composite ops by the simpler ops that are their meaning.
#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool decompose(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  // What a decomposition adds may be composite too: until nothing is left.
  for (bool again = true; again;) {
    again = false;
    for (NodeId id : graph.order()) {
      const OpDef& op = *graph.node(id).op;
      // What stands beside an op as its gradient is read by `differentiate`.
      if (!op.decompose || (op.replaces_gradient && context.awaits_gradients(graph))) continue;
      Builder& b = rewriter.before(id);
      const Node node = graph.node(id);  // a copy: the graph's storage grows
      rewriter.replace_node(id, op.decompose(b, node));
      context.count("nodes decomposed");
      again = true;
    }
  }
  return rewriter.changed();
}

}  // namespace

Pass decompose_pass() {
  return {.name = "decompose",
          .doc = "Replace composite ops by the simpler ops that define them.",
          .run = decompose,
          .in_bodies = true};
}

}  // namespace trainscope
