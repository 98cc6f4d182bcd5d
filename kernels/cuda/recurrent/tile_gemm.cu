// One kernel template for the GEMMs of recurrent cells, and what of it is used.
#include <cmath>

#include "kernels/api/low_precision.h"
#include "kernels/cuda/recurrent/tile_gemm.h"
#include "kernels/cuda/support/launch.h"

namespace trainscope::cuda {
namespace {

constexpr int kGemmTile = 64;   // rows and columns of C that a block computes
constexpr int kGemmSteps = 16;  // of k that are in shared memory
constexpr int kGemmSide = 16;   // threads of a block along either side of the tile
constexpr int kGemmThreads = kGemmSide * kGemmSide;
// Blocks that a processor of a GPU has at once, for the sake of registers.
template <typename S>
constexpr int kGemmBlocks = sizeof(S) == 8 ? 3 : 4;
constexpr int kGemmPitch = kGemmTile + 2;  // of a step's lines: stores of floats meet no bank twice
constexpr int kGemmOwn = kGemmTile / kGemmSide;  // rows and columns of a thread

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
__global__ void __launch_bounds__(kGemmThreads, kGemmBlocks<Computed<R>>)
    multiply_tiles(const TileGemm<A, B, R> gemm) {
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

}  // namespace

template <typename A, typename B, typename R>
void run_tile_gemm(const CallContext& call, const TileGemm<A, B, R>& gemm) {
  const std::int64_t down = (gemm.m + kGemmTile - 1) / kGemmTile;
  const std::int64_t across = (gemm.n + kGemmTile - 1) / kGemmTile;
  launch(call,
         {.blocks = dim3(static_cast<unsigned>(down * across)), .threads = dim3(kGemmThreads)},
         multiply_tiles<A, B, R>, gemm);
}

// Inputs with weights, states with weights, gradients of gates with weights and with what they were
// multiplied with.
#define TILE_GEMM(A, B, R) \
  template void run_tile_gemm(const CallContext&, const TileGemm<A, B, R>&);
#define TILE_GEMMS_OF_TWO_BYTES(T) \
  TILE_GEMM(T, T, float)           \
  TILE_GEMM(float, T, float)       \
  TILE_GEMM(float, T, T)           \
  TILE_GEMM(float, float, T)
TILE_GEMM(float, float, float)
TILE_GEMM(double, double, double)
TILE_GEMMS_OF_TWO_BYTES(BFloat16)
TILE_GEMMS_OF_TWO_BYTES(Float16)
#undef TILE_GEMMS_OF_TWO_BYTES
#undef TILE_GEMM

}  // namespace trainscope::cuda
