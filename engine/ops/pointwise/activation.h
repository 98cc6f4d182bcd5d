// Rows of the activation family that lie in sources of their own.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> composite_activation_ops();  // activation_composites.cpp

}  // namespace trainscope
