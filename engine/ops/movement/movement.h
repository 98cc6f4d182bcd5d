// Rows of the movement family that lie in sources of their own.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> region_ops();  // movement_regions.cpp

}  // namespace trainscope
