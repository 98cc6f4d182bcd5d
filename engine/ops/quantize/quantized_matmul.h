// The rows of matmuls of quantized tensors.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> quantized_matmul_rows();

}  // namespace trainscope
