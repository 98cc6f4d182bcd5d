// Recomputation as a change of the graph: nodes that run a second time, later.
#pragma once

#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// `node` runs once more, just before `before`.
struct Repeat {
  NodeId node;
  NodeId before;
};

struct RepeatedGraph {
  Graph graph;
  std::vector<NodeId> origin;  // by NodeId of `graph`: the node it is, or repeats, in the original
};

// The graph in which each repeat is a node of its own, "<name>/again": what `before` and the nodes
// after it read of the original comes from the repeat, so the original's bytes are free in between.
// Same op, inputs and attributes, so the same bits; random ops draw the same numbers again, since
// their stream is an attribute. Outputs that nobody reads again are left out where the op may.
//
// `repeats` go by the position of `before` in the order of execution, those before the same node in
// the order in which they run; the graph's order is phase by phase. Only views and nodes of the
// forward phase may be repeated. The result is verified and compacted.
RepeatedGraph with_repeats(Graph graph, const OpTable& ops, std::span<const Repeat> repeats);

}  // namespace trainscope
