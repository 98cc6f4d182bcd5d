// A node as it may have been written by mistake: other attributes, operands swapped or left out.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

struct NodeVariant {
  Node node;
  std::string what;  // "epsilon is 1e-06, not 1e-05"
};
// None for ops without attributes and with one operand.
std::vector<NodeVariant> variants_of(const Graph& graph, const Node& node);

}  // namespace trainscope
