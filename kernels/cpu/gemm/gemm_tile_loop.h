// The one source of the tiles, compiled for each instruction set. Nothing in here may be shared
// between the files that include it: a function that two of them emit under one name could be taken
// from the one whose instructions this machine lacks. Hence nothing of the standard library but
// types.
#pragma once

#include "kernels/cpu/gemm/gemm_tile.h"

namespace trainscope::cpu {
namespace {

struct FusedMultiplyAdd {
  template <typename T, typename Vector>
  static void add(Vector& sum, T a, const Vector& b) {
    sum += a * b;
  }
};

// A register has kBytes bytes; kRows * kVectors of them hold sums, kVectors hold B and one holds A.
template <typename T, int kBytes, int kRows, int kVectors, class MultiplyAdd = FusedMultiplyAdd>
struct TileLoop {
  using Element = Packed<T>;
  using Vector [[gnu::vector_size(kBytes)]] = Element;
  using Sum [[gnu::vector_size(kBytes)]] = Computed<T>;
  static constexpr std::int64_t kLanes = kBytes / static_cast<std::int64_t>(sizeof(Element));
  static constexpr std::int64_t kColumns = kVectors * kLanes;

  // A panel of B comes from L2.
  static constexpr std::int64_t kStepsAhead = 8;
  static void prefetch(const Element* row) {
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Element));
#pragma GCC unroll 4
    for (std::int64_t at = 0; at < kColumns; at += kLine) __builtin_prefetch(row + at);
  }

  template <bool kLinesTogether>
  static void run(const TileOperands<T>& tile) {
    const std::int64_t line = kLinesTogether ? 1 : tile.a_line;
    const std::int64_t step = kLinesTogether ? tile.a_step : 1;
    for (int i = 0; i < kRows; ++i) {
      __builtin_prefetch(tile.c + i * tile.c_row, 1);
      __builtin_prefetch(tile.c + i * tile.c_row + kColumns - 1, 1);
    }
    Sum sums[kRows][kVectors] = {};
    const Element* a = tile.a;
    const Element* b = tile.b;
    for (std::int64_t p = 0; p < tile.depth; ++p) {
      prefetch(b + kStepsAhead * kColumns);
      Vector of_b[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) __builtin_memcpy(&of_b[v], b + v * kLanes, kBytes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) MultiplyAdd::add(sums[i][v], a[i * line], of_b[v]);
      }
      a += step;
      b += kColumns;
    }
    store(tile, sums);
  }

  static void store(const TileOperands<T>& tile, const Sum (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        Sum result = sums[i][v] * tile.alpha;
        if (tile.addend != nullptr) {
          Sum addend;
          __builtin_memcpy(&addend, tile.addend + i * tile.addend_row + v * kLanes, kBytes);
          result = sums[i][v] * tile.alpha + addend * tile.beta;
        }
        __builtin_memcpy(tile.c + i * tile.c_row + v * kLanes, &result, kBytes);
      }
    }
  }

  // Divides kRows: A has place for whole tiles alone.
  static constexpr int kShortRows = kRows % 4 == 0 ? 4 : kRows / 2;
  using Short = TileLoop<T, kBytes, kShortRows, kVectors, MultiplyAdd>;

  static GemmTile<T> tile(const char* instructions) {
    static_assert(kRows <= GemmTile<T>::kMostRows && kColumns <= GemmTile<T>::kMostColumns);
    static_assert(kRows % kShortRows == 0);
    return {.instructions = instructions,
            .rows = kRows,
            .columns = kColumns,
            .lines_together = run<true>,
            .steps_together = run<false>,
            .short_rows = kShortRows,
            .short_lines_together = Short::template run<true>,
            .short_steps_together = Short::template run<false>};
  }
};

}  // namespace
}  // namespace trainscope::cpu
