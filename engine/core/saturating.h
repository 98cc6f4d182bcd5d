// Sums and products that stay at the largest number instead of overflowing. A model may claim any
// sizes, and what is only told or compared (FLOPs, bytes) must not fail for them.
#pragma once

#include <cstdint>
#include <limits>

namespace trainscope {

// a + b and a * b for a, b >= 0.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}

inline void add_saturating(std::int64_t& sum, std::int64_t more) {
  sum = saturating_add(sum, more);
}

}  // namespace trainscope
