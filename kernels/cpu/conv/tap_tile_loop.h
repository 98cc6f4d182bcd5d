// The one source of the sums over pixels for some taps, compiled for each instruction set. Nothing
// in here may be shared between the files that include it (see gemm_tile_loop.h).
#pragma once

#include "kernels/cpu/conv/tap_tile.h"

namespace trainscope::cpu {
namespace {

// kBytes: of a register. kRows * kTaps sums, kTaps registers of x and one of dy at once. Taps side
// by side share most of what they read of x.
template <int kBytes, int kRows>
struct TapLoop {
  using Vector [[gnu::vector_size(kBytes)]] = float;
  static constexpr std::int64_t kLanes = kBytes / static_cast<std::int64_t>(sizeof(float));

  template <int kTaps>
  using Sums = Vector[kRows][kTaps];

  template <int kTaps>
  static void run(const TapOperands& all) {
    for (int i = 0; i < kRows && i < all.kept; ++i) {
      __builtin_prefetch(all.sums + i * all.sums_row, 1);
      __builtin_prefetch(all.sums + i * all.sums_row + kTaps * kLanes - 1, 1);
    }
    Sums<kTaps> sums = {};
    const float* dy = all.dy;
    for (std::int64_t e = 0; e < all.examples; ++e) {
      const float* x = all.x + e * all.x_example;
      for (std::int64_t r = 0; r < all.rows; ++r) {
        add_row<kTaps>(all, dy, x + r * all.x_row, sums);
        dy += all.columns * kRows;
      }
    }
    store<kTaps>(all, sums);
  }

  template <int kTaps>
  static void add_row(const TapOperands& all, const float* dy, const float* x, Sums<kTaps>& sums) {
    const float* of_tap[kTaps];
    for (int t = 0; t < kTaps; ++t) of_tap[t] = x + all.taps[t];
    std::int64_t column = 0;
    const std::int64_t step = all.x_column;
    for (std::int64_t c = 0; c < all.columns; ++c) {
      Vector lanes[kTaps];
#pragma GCC unroll 3
      for (int t = 0; t < kTaps; ++t) __builtin_memcpy(&lanes[t], of_tap[t] + column, kBytes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
        for (int t = 0; t < kTaps; ++t) sums[i][t] += dy[i] * lanes[t];
      }
      dy += kRows;
      column += step;
    }
  }

  template <int kTaps>
  static void store(const TapOperands& all, const Sums<kTaps>& sums) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      if (i >= all.kept) return;
#pragma GCC unroll 3
      for (int t = 0; t < kTaps; ++t) {
        float* to = all.sums + i * all.sums_row + t * kLanes;
        Vector sum = sums[i][t];
        if (all.added) {
          Vector before;
          __builtin_memcpy(&before, to, kBytes);
          sum += before;
        }
        __builtin_memcpy(to, &sum, kBytes);
      }
    }
  }

  static TapTile tile(const char* instructions) {
    static_assert(TapOperands::kMostTaps == 3 && kLanes <= TapTile::kMostLanes);
    return {.instructions = instructions,
            .rows = kRows,
            .lanes = kLanes,
            .sums = {run<1>, run<2>, run<3>}};
  }
};

}  // namespace
}  // namespace trainscope::cpu
