// The value of a Constant node, for the importer, which turns such nodes into constants.
#pragma once

#include "engine/core/tensor.h"
#include "engine/ir/attributes.h"

namespace trainscope {

// From value, value_float, value_floats, value_int or value_ints, of which exactly one is given.
Tensor constant_value(const Attributes& attributes);

}  // namespace trainscope
