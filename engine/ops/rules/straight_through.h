// Straight-through estimators (Bengio, Leonard, Courville 2013).
#pragma once

#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"

namespace trainscope {

// Whether the gradient of the node may be taken for that of the identity: a step (Round, Sign) of
// the model itself. What passes and decompositions round is meant to have none.
inline bool passes_straight(const Node& node) {
  return node.op->piecewise_constant && node.provenance.pass == kImportPass;
}

// Of a node with a body, 1: the steps in it pass gradients on.
inline constexpr const char* kStraightThrough = "straight_through";

}  // namespace trainscope
