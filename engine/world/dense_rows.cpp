// SumRowsById as GatherGrad, steps of rows as steps of all elements.
#include "engine/world/dense_rows.h"

#include <utility>
#include <vector>

#include "engine/ir/rewriter.h"

namespace trainscope {
namespace {

// The gradient of all rows: what the sums of rows are read as.
ValueId dense_gradient(Rewriter& rewriter, NodeId id, const Shape& shape) {
  const Node sums = rewriter.graph().node(id);  // a copy: the graph grows
  const Ints dims(shape.span().begin(), shape.span().end());
  const ValueId dense =
      rewriter.before(id)("GatherGrad", {sums.inputs[0], sums.inputs[1]}, {{"shape", dims}});
  for (const Use& use : std::vector<Use>(rewriter.graph().value(sums.outputs[0]).uses)) {
    rewriter.set_input(use.node, use.input, dense);
  }
  return dense;
}

// Inputs: the parameter, rows, states, ids, count, three scalars.
void replace_step(Rewriter& rewriter, NodeId id) {
  const Node node = rewriter.graph().node(id);
  const NodeId sums = rewriter.graph().value(node.inputs[1]).producer;
  const Shape shape = rewriter.graph().value(node.inputs[0]).type.shape;
  std::vector<ValueId> inputs = node.inputs;
  inputs[1] = dense_gradient(rewriter, sums, shape);
  inputs.erase(inputs.end() - 5, inputs.end() - 3);
  rewriter.replace_node(
      id, rewriter.before(id).multi(node.op->dense_form, std::move(inputs),
                                    static_cast<int>(node.outputs.size()), node.attributes));
  rewriter.erase(sums);
}

}  // namespace

void make_rows_dense(Graph& graph, const OpTable& ops) {
  Rewriter rewriter(graph, ops, "world", nullptr);
  for (NodeId id : graph.order()) {
    if (!graph.node(id).op->dense_form.empty()) replace_step(rewriter, id);
  }
}

}  // namespace trainscope
