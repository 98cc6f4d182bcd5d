// Views that patterns may look through: those that gradients flow through.
#pragma once

#include "engine/ir/op_def.h"

namespace trainscope {

// Not of StopGradient: what stands on its two sides is not the same to a gradient.
inline bool is_plain_view(const OpDef& op) {
  return op.is_view && op.differentiable != Differentiable::kNo;
}

}  // namespace trainscope
