// scattered_sums: what an embedding adds to a gradient goes straight into the rest of the sum.
#include <optional>
#include <vector>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// The rows of a sum and what is added to them.
struct Scattered {
  NodeId scatter = kNoNode;  // into zeros, which nothing but the addition reads
  ValueId sum = kNoValue;
};

bool is_only_scattered(const Graph& graph, ValueId v) {
  const NodeId producer = graph.value(v).producer;
  if (producer == kNoNode || graph.is_output(v) || graph.value(v).uses.size() != 1) return false;
  const Node& node = graph.node(producer);
  return !node.op->scatters.empty() && node.inputs.size() == 2;
}

std::optional<Scattered> scattered_term(const Graph& graph, const Node& add) {
  if (!add.op->is_sum || add.inputs.size() != 2) return std::nullopt;
  if (graph.value(add.inputs[0]).type != graph.value(add.inputs[1]).type) return std::nullopt;
  for (std::size_t i : {1, 0}) {  // of two, the one added last
    const ValueId term = add.inputs[i];
    if (is_only_scattered(graph, term)) return {{graph.value(term).producer, add.inputs[1 - i]}};
  }
  return std::nullopt;
}

bool add_into_sums(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    const std::optional<Scattered> found = scattered_term(graph, graph.node(id));
    if (!found) continue;
    std::vector<ValueId> inputs = graph.node(found->scatter).inputs;
    inputs.push_back(found->sum);
    Attributes attributes = graph.node(found->scatter).attributes;
    const ValueId result =
        rewriter.before(id)(graph.node(found->scatter).op->name, inputs, std::move(attributes));
    rewriter.replace_node(id, {result});
    rewriter.erase_into(found->scatter, result);
    context.count("additions saved");
  }
  return rewriter.changed();
}

}  // namespace

Pass scattered_sums_pass() {
  return {.name = "scattered_sums",
          .doc = "Add the rows of an embedding's gradient into the rest of its sum, in place.",
          .run = add_into_sums};
}

}  // namespace trainscope
