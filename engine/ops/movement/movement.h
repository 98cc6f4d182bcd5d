// The parts of the movement family.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> region_ops();  // movement_regions.cpp

}  // namespace trainscope
