// The gradient graph of one op, built with the row's rule or through its decomposition.
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/graph.h"

namespace trainscope::test {

// Gradients by the node's inputs, given those by its outputs (kNoValue: none). An input's entry is
// kNoValue when it is not wanted or no gradient flows there. Appends nodes to the builder's graph.
std::vector<ValueId> backward(Builder& b, NodeId node, const std::vector<ValueId>& dy,
                              const std::vector<bool>& wanted);

}  // namespace trainscope::test
