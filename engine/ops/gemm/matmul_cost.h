// FLOPs of matmuls, and of other sums of products: convolutions, attention, interpolation.
#pragma once

#include <cstdint>

#include "engine/core/saturating.h"

namespace trainscope {

// Two FLOPs for each of `terms` products in each of `outputs` sums.
inline std::int64_t matmul_flops(std::int64_t outputs, std::int64_t terms) {
  return saturating_multiply(2, saturating_multiply(outputs, terms));
}

}  // namespace trainscope
