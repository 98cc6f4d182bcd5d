// A graph as text of Graphviz's language, for a picture of a stage.
#pragma once

#include <string>

#include "engine/ir/graph.h"

namespace trainscope {

// Nodes in a box for each phase, inputs and initializers as ellipses; arrows bear types. Names are
// whole, whatever characters they have.
std::string dot_text(const Graph& graph);

}  // namespace trainscope
