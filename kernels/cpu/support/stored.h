// Writing numbers as the element type they are stored in.
#pragma once

#include <type_traits>

#include "kernels/api/low_precision.h"

namespace trainscope::cpu {

// to = value, rounded. A whole BFloat16 that is assigned in a loop keeps g++ 12 from vectorising
// it; its bits do not.
template <typename T, typename Number>
inline void store(T& to, Number value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    to.bits = bf16_bits(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float16>) {
    to.bits = f16_bits(static_cast<float>(value));
  } else {
    to = static_cast<T>(value);
  }
}

}  // namespace trainscope::cpu
