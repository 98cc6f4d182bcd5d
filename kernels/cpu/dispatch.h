// From a dtype at run time to a C++ type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/api/dtype.h"

namespace trainscope::cpu {

// Calls f with a null pointer to the dtype's element type.
template <class F>
void with_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(static_cast<float*>(nullptr));
    case DType::kF64:
      return f(static_cast<double*>(nullptr));
    case DType::kI32:
      return f(static_cast<std::int32_t*>(nullptr));
    case DType::kI64:
      return f(static_cast<std::int64_t*>(nullptr));
    case DType::kBool:
      return f(static_cast<bool*>(nullptr));
  }
}

// Calls f with a null pointer to an unsigned integer as wide as the dtype: for kernels that only
// move elements.
template <class F>
void with_width(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(static_cast<std::uint8_t*>(nullptr));
    case 4:
      return f(static_cast<std::uint32_t*>(nullptr));
    default:
      return f(static_cast<std::uint64_t*>(nullptr));
  }
}

// T in with_dtype(dtype, [&](auto* type) { using T = Pointee<decltype(type)>; ... }).
template <class Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

}  // namespace trainscope::cpu
