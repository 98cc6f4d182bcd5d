// One number as another element type.
#pragma once

#include <limits>
#include <type_traits>

namespace trainscope::cpu {

// Floats beyond an integer's range give its nearest, NaN gives 0.
template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The limits as From: -2^n exactly, and 2^n, the first number beyond. NaN fails both tests.
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    if (x >= -kLow) return std::numeric_limits<To>::max();
    if (x < kLow) return std::numeric_limits<To>::min();
    return x == x ? static_cast<To>(x) : To{0};
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace trainscope::cpu
