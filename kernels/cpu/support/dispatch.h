// From a dtype at run time to a C++ type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/api/dtype.h"

namespace trainscope::cpu {

// Calls f with a null pointer to the dtype's element type: floats, i32, i64 and bool. Other types
// have no loops of their own; f is not called for them.
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
    case DType::kBF16:
      return f(static_cast<BFloat16*>(nullptr));
    case DType::kF16:
      return f(static_cast<Float16*>(nullptr));
    default:
      return;
  }
}

// The same for dtypes that are computed with as they are; f is not called for others.
template <class F>
void with_computed_dtype(DType dtype, F&& f) {
  with_dtype(dtype, [&](auto* type) {
    if constexpr (!kIsStoredOnly<std::remove_pointer_t<decltype(type)>>) f(type);
  });
}

// Calls f with a null pointer to an unsigned integer as wide as the dtype: for kernels that only
// move elements.
template <class F>
void with_width(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(static_cast<std::uint8_t*>(nullptr));
    case 2:
      return f(static_cast<std::uint16_t*>(nullptr));
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
