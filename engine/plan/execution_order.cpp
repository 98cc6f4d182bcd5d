// Each node of an order as one execution.
#include "engine/plan/execution_order.h"

namespace trainscope {

ExecutionOrder execution_order_of(const Graph& graph, std::span<const NodeId> order) {
  ExecutionOrder result;
  result.executions.reserve(order.size());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    result.executions.push_back({.node = id,
                                 .begin = static_cast<std::uint32_t>(result.operands.size()),
                                 .input_count = static_cast<std::uint32_t>(node.inputs.size()),
                                 .output_count = static_cast<std::uint32_t>(node.outputs.size())});
    for (ValueId v : node.inputs) result.operands.push_back(static_cast<std::int32_t>(v));
    for (ValueId v : node.outputs) result.operands.push_back(static_cast<std::int32_t>(v));
  }
  return result;
}

}  // namespace trainscope
