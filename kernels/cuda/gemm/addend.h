// The addend of a matmul, spread over its result.
#pragma once

#include <cstdint>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// to[r, c] = scale * from[r * row_stride + c * column_stride] for [rows, columns]; zeros where
// there is no `from`. All of one dtype, f32, f64, bf16 or f16.
struct SpreadAddend {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  double scale = 1.0;
};
void spread_addend(const SpreadAddend& spread, DType dtype, const CallContext& call);

}  // namespace trainscope::cuda
