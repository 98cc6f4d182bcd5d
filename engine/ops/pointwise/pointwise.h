// Rows of the pointwise family that lie in sources of their own.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> logic_ops();          // logic.cpp
std::vector<OpDef> extreme_ops();        // extremes.cpp
std::vector<OpDef> function_ops();       // pointwise_functions.cpp
std::vector<OpDef> trigonometric_ops();  // trigonometric.cpp

}  // namespace trainscope
