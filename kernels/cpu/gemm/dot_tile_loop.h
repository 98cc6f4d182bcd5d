// The one source of the tiles of dot products of lines, compiled for each instruction set. Nothing
// in here may be shared between the files that include it (see gemm_tile_loop.h).
#pragma once

#include "kernels/cpu/gemm/dot_tile.h"

namespace trainscope::cpu {
namespace {

// A register has kBytes bytes.
template <int kBytes, int kRows, int kColumns>
struct DotLoop {
  template <int kWidth>
  using Floats [[gnu::vector_size(kWidth * sizeof(float))]] = float;
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(float));
  static constexpr int kChunks = static_cast<int>(kDotLanes) / kLanes;
  using Vector = Floats<kLanes>;
  using Sums = Vector[kChunks];

  template <int kR, int kC>
  static void run(const DotOperands& lines) {
    Sums sums[kR][kC] = {};
    for (std::int64_t s = 0; s < lines.segments; ++s) {
      const float* a = lines.a + s * lines.a_segment;
      const float* b[kC];
      for (int j = 0; j < kC; ++j) b[j] = lines.b[j] + s * lines.b_segment;
      for (std::int64_t k = 0; k < lines.steps * kDotLanes; k += kDotLanes) {
#pragma GCC unroll 2
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          add_products(a + k + chunk * kLanes, lines.a_line, b, k + chunk * kLanes, chunk, sums);
        }
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < kR; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kC; ++j) lines.to[i * lines.to_row + j] = total(sums[i][j]);
    }
  }

  template <int kR, int kC>
  static void add_products(const float* a, std::int64_t a_line, const float* const (&b)[kC],
                           std::int64_t at, int chunk, Sums (&sums)[kR][kC]) {
    Vector of_b[kC];
#pragma GCC unroll 4
    for (int j = 0; j < kC; ++j) __builtin_memcpy(&of_b[j], b[j] + at, kBytes);
#pragma GCC unroll 6
    for (int i = 0; i < kR; ++i) {
      Vector of_a;
      __builtin_memcpy(&of_a, a + i * a_line, kBytes);
#pragma GCC unroll 4
      for (int j = 0; j < kC; ++j) sums[i][j][chunk] += of_a * of_b[j];
    }
  }

  // Halves are added to each other.
  static float total(const Sums& sums) {
    Floats<8> eight;
    if constexpr (kChunks == 1) {
      eight = __builtin_shufflevector(sums[0], sums[0], 0, 1, 2, 3, 4, 5, 6, 7) +
              __builtin_shufflevector(sums[0], sums[0], 8, 9, 10, 11, 12, 13, 14, 15);
    } else {
      eight = sums[0] + sums[1];
    }
    const Floats<4> four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                           __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    const Floats<4> two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
    return two[0] + two[1];
  }

  // The table from entry (kR, kC) backwards.
  template <int kR, int kC>
  static void fill(DotTile& tile) {
    tile.sums[kR - 1][kC - 1] = run<kR, kC>;
    if constexpr (kC > 1) {
      fill<kR, kC - 1>(tile);
    } else if constexpr (kR > 1) {
      fill<kR - 1, kColumns>(tile);
    }
  }

  static DotTile tile(const char* instructions) {
    static_assert(kRows <= DotTile::kMostRows && kColumns <= DotTile::kMostColumns);
    DotTile made{.instructions = instructions, .rows = kRows, .columns = kColumns};
    fill<kRows, kColumns>(made);
    return made;
  }
};

}  // namespace
}  // namespace trainscope::cpu
