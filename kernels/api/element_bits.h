// One number as the bits of an element, for kernels that only move elements.
#pragma once

#include <cstring>

#include "kernels/api/conversion.h"

namespace trainscope {

// T is the unsigned integer as wide as the dtype (with_width).
template <class T>
T element_bits(DType dtype, double value) {
  T bits{};
  convert_elements({DType::kF64, &value}, {dtype, &bits}, 1);
  return bits;
}

}  // namespace trainscope
