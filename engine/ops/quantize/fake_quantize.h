// The rows of what a quantized tensor does to training.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> fake_quantize_rows();

}  // namespace trainscope
