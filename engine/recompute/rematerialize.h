// Rematerialization as a change of the order of executions, and of the graph: nodes that run a
// second time, later.
#pragma once

#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/plan/execution_order.h"

namespace trainscope {

// Just before `before`, `node` is rematerialized: it runs once more. Or, where `node` is kNoNode,
// `fetch` comes back from host memory, where it went as soon as it was made.
struct Rematerialization {
  NodeId node = kNoNode;
  NodeId before = kNoNode;
  ValueId fetch = kNoValue;
};

// A step with rematerializations: `before` and the executions after it read the results of the
// second execution, so the bytes of the first one's are free in between. Outputs of a second
// execution that nobody reads are left out, as far as the op may; so is the whole execution where
// nobody reads any of them.
//
// `order` is that of the step without any. `rematerializations` go by the position of `before` in
// it, those before the same node in the order in which they run. Only views and nodes of the
// forward phase may be rematerialized.
ExecutionOrder rematerialized_order(const Graph& graph, std::span<const NodeId> order,
                                    std::span<const Rematerialization> rematerializations);

struct RematerializedGraph {
  Graph graph;
  // By NodeId of `graph`: the node of the original that it is or rematerializes; kNoNode: a
  // transfer.
  std::vector<NodeId> origin;
};

// The graph of such an order, in which each second execution is a node of its own,
// "<name>/rematerialized", and there are nodes Offload and Fetch around what is in host memory in
// between. Rematerialized nodes have the same op, inputs and attributes, so the same bits; random
// ops draw the same numbers, since their stream is an attribute. The graph's order is this one; it
// is verified and compacted.
RematerializedGraph rematerialized_graph(Graph graph, const OpTable& ops,
                                         const ExecutionOrder& order);

}  // namespace trainscope
