// wide_gradients: what mixed precision would round and then cast to f32 is f32 at once: gradients
// of parameters keep what their products and sums have accumulated.
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/rewriter.h"
#include "engine/passes/passes.h"

namespace trainscope {
namespace {

bool is_widening(const Graph& graph, const Node& node) {
  return node.op->name == "Cast" && node.op->domain == kOnnxDomain &&
         is_stored_only(graph.value(node.inputs[0]).type.dtype) &&
         graph.value(node.outputs[0]).type.dtype == DType::kF32;
}

// A value that one node reads, and that is nothing else.
bool is_read_once(const Graph& graph, ValueId v) {
  return graph.value(v).kind == ValueKind::kNode && graph.value(v).uses.size() == 1 &&
         !graph.is_output(v);
}

// The views that lead to the cast, the last one first, and the node whose result they look at.
struct Chain {
  std::vector<NodeId> views;
  NodeId source = kNoNode;  // kNoNode: it has no wide form
};

Chain chain_before(const Graph& graph, const Node& cast) {
  Chain chain;
  ValueId v = cast.inputs[0];
  while (is_read_once(graph, v)) {
    const NodeId producer = graph.value(v).producer;
    const Node& node = graph.node(producer);
    if (!node.op->is_view) {
      if (!node.op->upcast_form.empty()) chain.source = producer;
      break;
    }
    chain.views.push_back(producer);
    v = node.inputs[0];
  }
  return chain;
}

ValueId add_upcast_form(Rewriter& rewriter, const Node& node, NodeId id) {
  Attributes attributes = node.attributes;
  if (node.op->upcast_form == node.op->name) attributes.set("wide", std::int64_t{1});
  return rewriter.before(id)(node.op->upcast_form, node.inputs, std::move(attributes));
}

void widen(Rewriter& rewriter, NodeId cast, const Chain& chain) {
  Graph& graph = rewriter.graph();
  const Node source = graph.node(chain.source);  // a copy: the graph grows
  ValueId wide = add_upcast_form(rewriter, source, chain.source);
  for (auto view = chain.views.rbegin(); view != chain.views.rend(); ++view) {
    const Node node = graph.node(*view);
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = wide;
    wide = rewriter.before(*view)(node.op->name, std::move(inputs), node.attributes);
  }
  rewriter.replace_node(cast, {wide});
  for (NodeId view : chain.views) rewriter.erase(view);
  rewriter.erase(chain.source);
}

bool widen_gradients(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    if (!is_widening(graph, graph.node(id))) continue;
    const Chain chain = chain_before(graph, graph.node(id));
    if (chain.source == kNoNode) continue;
    widen(rewriter, id, chain);
    context.count("results left in f32");
  }
  return rewriter.changed();
}

}  // namespace

Pass wide_gradients_pass() {
  return {.name = "wide_gradients",
          .doc = "In mixed precision: leave results in f32 where they would be rounded and cast.",
          .run = widen_gradients};
}

}  // namespace trainscope
