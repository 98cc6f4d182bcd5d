// Scales and zero points of quantized tensors: one, one for each index of an axis, or one for each
// block of indices.
#pragma once

#include <cstdint>

#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "kernels/api/params.h"

namespace trainscope {

// Which elements of input 0 the elements of input `scale` belong to, by the attributes axis and
// block_size. Fails with kBadInput when the shapes do not fit.
QuantizeParams quantize_layout(const OpArgs& args, int scale);

// `v`, scales or zero points of a tensor of this shape, such that it broadcasts to the tensor.
ValueId spread_scale(Builder& b, ValueId v, const Shape& shape, const QuantizeParams& layout);

// The integers that an element type holds: u8 is [0, 255].
struct IntegerRange {
  double least = 0.0;
  double greatest = 0.0;
};
IntegerRange integer_range(DType dtype);
// Whether QuantizeLinear rounds to integers of the type: of 16 bits at most.
bool is_quantized_integer(DType dtype);

}  // namespace trainscope
