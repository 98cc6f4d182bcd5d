// GEMMs of recurrent cells: of all steps at once, and of the state at every step. Operands of any
// strides, as transposed weights and some gates of a row are.
#pragma once

#include <cstdint>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Element (line, step) of an operand is data[line * line_stride + step * step_stride]: a line is a
// row of A or a column of B, the steps are what is summed over.
template <typename T>
struct GemmLines {
  const T* data = nullptr;
  std::int64_t line_stride = 0;
  std::int64_t step_stride = 0;
};

// C [m, n], rows `c_row` apart, = A [m, k] B [k, n], or that added to C. Of each element the terms
// are added in the order of k, in f32 (f64 of f64).
template <typename A, typename B, typename R>
struct TileGemm {
  GemmLines<A> a;
  GemmLines<B> b;
  R* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool adds = false;
};

// Of A, B and C: what is kept of T and what is computed of it, as GEMMs of cells need them.
template <typename A, typename B, typename R>
void run_tile_gemm(const CallContext& call, const TileGemm<A, B, R>& gemm);

}  // namespace trainscope::cuda
