// The rows of products of quantized tensors.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<OpDef> quantized_product_rows();

}  // namespace trainscope
