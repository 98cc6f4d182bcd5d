// FLOPs of sums of products.
#pragma once

#include <cstdint>
#include <limits>

namespace trainscope {

// Two FLOPs for each of `terms` products in each of `outputs` sums; the largest number when that is
// beyond 63 bits (a model may claim any size, and a cost must not fail).
inline std::int64_t product_flops(std::int64_t outputs, std::int64_t terms) {
  std::int64_t flops = 0;
  const bool too_large =
      __builtin_mul_overflow(outputs, terms, &flops) || __builtin_mul_overflow(flops, 2, &flops);
  return too_large ? std::numeric_limits<std::int64_t>::max() : flops;
}

}  // namespace trainscope
