// Nodes of the model that run in the backward phase, each when a gradient first needs it.
#pragma once

#include <span>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

// `model`: the nodes that were there before the gradients. Those of them that are of the backward
// phase (chunks of the loss) move behind the others and run just before the first gradient that
// reads what they make; what no gradient reads comes last. An order of all nodes.
std::vector<NodeId> with_late_nodes(const Graph& graph, std::span<const NodeId> model);

}  // namespace trainscope
