// GEMMs of recurrent cells: of all steps at once, and of the state at every step. Operands of any
// strides, as transposed weights and some gates of a row are.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/api/low_precision.h"
#include "kernels/cuda/support/launch.h"

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

inline constexpr int kGemmTile = 64;   // rows and columns of C that a block computes
inline constexpr int kGemmSteps = 16;  // of k that are in shared memory
inline constexpr int kGemmSide = 16;   // threads of a block along either side of the tile
inline constexpr int kGemmThreads = kGemmSide * kGemmSide;
inline constexpr int kGemmPitch = kGemmTile + 2;  // of a step's lines: stores meet no bank twice
inline constexpr int kGemmOwn = kGemmTile / kGemmSide;  // rows and columns of a thread

// Steps [first_step, + kGemmSteps) of the tile's lines, with zeros where there are none. Threads go
// along what lies side by side.
template <typename T, typename S>
__device__ void load_gemm_tile(const GemmLines<T>& from, std::int64_t first_line,
                               std::int64_t lines, std::int64_t first_step, std::int64_t steps,
                               S* tile) {
  const bool along_steps = from.step_stride == 1;
  for (int i = static_cast<int>(threadIdx.x); i < kGemmTile * kGemmSteps; i += kGemmThreads) {
    const int step = along_steps ? i % kGemmSteps : i / kGemmTile;
    const int line = along_steps ? i / kGemmSteps : i % kGemmTile;
    const bool is_there = first_line + line < lines && first_step + step < steps;
    tile[step * kGemmPitch + line] =
        is_there ? static_cast<S>(computed(from.data[(first_line + line) * from.line_stride +
                                                     (first_step + step) * from.step_stride]))
                 : S(0);
  }
}

// A block computes a tile of 64 x 64, a thread 4 x 4 of it, 16 apart. Bytes: A is read once for
// each 64 columns, B once for each 64 rows, C written (and read, where it is added to) once. FLOPs:
// 2 m n k. Two tiles in shared memory: one is filled while the other may still be read.
template <typename A, typename B, typename R>
__global__ void __launch_bounds__(kGemmThreads) multiply_tiles(const TileGemm<A, B, R> gemm) {
  using S = Computed<R>;
  constexpr int kTile = kGemmSteps * kGemmPitch;
  TRAINSCOPE_SHARED(S, a_tiles, 2 * kTile);
  TRAINSCOPE_SHARED(S, b_tiles, 2 * kTile);
  const std::int64_t across = (gemm.n + kGemmTile - 1) / kGemmTile;
  const std::int64_t first_row = std::int64_t{blockIdx.x} / across * kGemmTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} % across * kGemmTile;
  const int row = static_cast<int>(threadIdx.x) / kGemmSide;
  const int column = static_cast<int>(threadIdx.x) % kGemmSide;
  S sums[kGemmOwn][kGemmOwn] = {};
  int buffer = 0;
  for (std::int64_t step = 0; step < gemm.k; step += kGemmSteps, buffer = kTile - buffer) {
    load_gemm_tile(gemm.a, first_row, gemm.m, step, gemm.k, a_tiles + buffer);
    load_gemm_tile(gemm.b, first_column, gemm.n, step, gemm.k, b_tiles + buffer);
    __syncthreads();
    for (int s = 0; s < kGemmSteps; ++s) {
      const S* a = a_tiles + buffer + s * kGemmPitch + row;
      const S* b = b_tiles + buffer + s * kGemmPitch + column;
      for (int i = 0; i < kGemmOwn; ++i) {
        for (int j = 0; j < kGemmOwn; ++j) {
          sums[i][j] = std::fma(a[i * kGemmSide], b[j * kGemmSide], sums[i][j]);
        }
      }
    }
  }
  for (int i = 0; i < kGemmOwn; ++i) {
    for (int j = 0; j < kGemmOwn; ++j) {
      const std::int64_t r = first_row + row + i * kGemmSide;
      const std::int64_t c = first_column + column + j * kGemmSide;
      if (r >= gemm.m || c >= gemm.n) continue;
      R* to = gemm.c + r * gemm.c_row + c;
      *to = static_cast<R>(gemm.adds ? computed(*to) + sums[i][j] : sums[i][j]);
    }
  }
}

template <typename A, typename B, typename R>
void run_tile_gemm(const CallContext& call, const TileGemm<A, B, R>& gemm) {
  const std::int64_t down = (gemm.m + kGemmTile - 1) / kGemmTile;
  const std::int64_t across = (gemm.n + kGemmTile - 1) / kGemmTile;
  launch(call,
         {.blocks = dim3(static_cast<unsigned>(down * across)), .threads = dim3(kGemmThreads)},
         multiply_tiles<A, B, R>, gemm);
}

}  // namespace trainscope::cuda
