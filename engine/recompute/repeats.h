// Recomputation as a change of the order of runs, and of the graph: nodes that run a second time,
// later.
#pragma once

#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/plan/run_order.h"

namespace trainscope {

// Just before `before`, `node` runs once more; or `fetch` comes back from host memory, where it
// went as soon as it was made.
struct Repeat {
  NodeId node = kNoNode;
  NodeId before = kNoNode;
  ValueId fetch = kNoValue;
};

// A step with repeats: what `before` and the runs after it read of the original comes from the
// repeat, so the original's bytes are free in between. Outputs that nobody reads again are left
// out, as far as the op may; so is a repeat of which nobody reads anything.
//
// `order` is that of the step without repeats. `repeats` go by the position of `before` in it,
// those before the same node in the order in which they run. Only views and nodes of the forward
// phase may be repeated.
RunOrder repeated_order(const Graph& graph, std::span<const NodeId> order,
                        std::span<const Repeat> repeats);

struct RepeatedGraph {
  Graph graph;
  // By NodeId of `graph`: the node it is, or repeats, in the original; kNoNode: a transfer.
  std::vector<NodeId> origin;
};

// The graph of such an order, in which each repeat is a node of its own, "<name>/again", and there
// are nodes Offload and Fetch around what is in host memory in between. Repeats have the same op,
// inputs and attributes, so the same bits; random ops draw the same numbers again, since their
// stream is an attribute. The graph's order is this one; it is verified and compacted.
RepeatedGraph with_repeats(Graph graph, const OpTable& ops, const RunOrder& order);

}  // namespace trainscope
