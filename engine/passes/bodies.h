// Bodies of nodes: graphs that attributes hold, shared and never changed in place.
#pragma once

#include <functional>

#include "engine/ir/graph.h"

namespace trainscope {

// Calls `change` with a copy of each body of a node of the graph; where it returns true, whether it
// changed the copy, this becomes the node's body. Returns whether any did. The bodies within bodies
// are the matter of `change`.
bool change_bodies(Graph& graph, const std::function<bool(Graph& body)>& change);

}  // namespace trainscope
