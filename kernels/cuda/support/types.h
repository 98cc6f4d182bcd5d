// From dtypes at run time to C++ types, and types for which a kernel is added.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/api/dtype.h"

namespace trainscope::cuda {

// Calls f with a null pointer to an unsigned integer as wide as the dtype.
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

// T in with_width(dtype, [&](auto* type) { using T = Pointee<decltype(type)>; ... }).
template <class Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

// Calls f with a null pointer to each type.
template <class... T, class F>
void for_types(F&& f) {
  (f(static_cast<T*>(nullptr)), ...);
}
template <class F>
void for_float_types(F&& f) {
  for_types<float, double, BFloat16, Float16>(f);
}
template <class F>
void for_number_types(F&& f) {
  for_float_types(f);
  for_types<std::int32_t, std::int64_t>(f);
}

}  // namespace trainscope::cuda
