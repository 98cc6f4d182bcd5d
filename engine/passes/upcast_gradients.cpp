// upcast_gradients: what mixed precision would round and then cast to f32 is f32 at once: gradients
// of parameters keep what their matmuls and sums have accumulated.
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool is_upcast(const Graph& graph, const Node& node) {
  return node.op->keeps_integers && is_stored_only(graph.value(node.inputs[0]).type.dtype) &&
         graph.value(node.outputs[0]).type.dtype == DType::kF32;
}

// A value that one node reads, and that is nothing else.
bool is_read_once(const Graph& graph, ValueId v) {
  return graph.value(v).kind == ValueKind::kNode && graph.value(v).uses.size() == 1 &&
         !graph.is_output(v);
}

// What stands before a cast to f32: the views that lead to it, the last one first, and the node
// whose result they look at.
struct CastSource {
  std::vector<NodeId> views;
  NodeId node = kNoNode;  // kNoNode: it has no form whose result is f32
};

CastSource source_before(const Graph& graph, const Node& cast) {
  CastSource source;
  ValueId v = cast.inputs[0];
  while (is_read_once(graph, v)) {
    const NodeId producer = graph.value(v).producer;
    const Node& node = graph.node(producer);
    if (!node.op->is_view) {
      if (!node.op->upcast_form.empty()) source.node = producer;
      break;
    }
    source.views.push_back(producer);
    v = node.inputs[0];
  }
  return source;
}

ValueId add_upcast_form(Rewriter& rewriter, const Node& node, NodeId id) {
  Attributes attributes = node.attributes;
  if (node.op->upcast_form == node.op->name) attributes.set("upcast", std::int64_t{1});
  return rewriter.before(id)(node.op->upcast_form, node.inputs, std::move(attributes));
}

void upcast(Rewriter& rewriter, NodeId cast, const CastSource& before) {
  Graph& graph = rewriter.graph();
  const Node source = graph.node(before.node);  // a copy: the graph grows
  const ValueId upcast_result = add_upcast_form(rewriter, source, before.node);
  ValueId result = upcast_result;
  for (auto view = before.views.rbegin(); view != before.views.rend(); ++view) {
    const Node node = graph.node(*view);
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = result;
    result = rewriter.before(*view)(node.op->name, std::move(inputs), node.attributes);
  }
  rewriter.replace_node(cast, {result});
  for (NodeId view : before.views) rewriter.erase_into(view, result);
  rewriter.erase_into(before.node, upcast_result);
}

bool upcast_gradients(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    if (!is_upcast(graph, graph.node(id))) continue;
    const CastSource before = source_before(graph, graph.node(id));
    if (before.node == kNoNode) continue;
    upcast(rewriter, id, before);
    context.count("results left in f32");
  }
  return rewriter.changed();
}

}  // namespace

Pass upcast_gradients_pass() {
  return {.name = "upcast_gradients",
          .formerly = "wide_gradients",
          .doc = "In mixed precision: leave results in f32 where they would be rounded and cast.",
          .run = upcast_gradients};
}

}  // namespace trainscope
