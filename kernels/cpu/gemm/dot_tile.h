// The dot products of every pair of some lines, in registers, once for each instruction set.
#pragma once

#include <cstdint>

namespace trainscope::cpu {

// Elements of a line that are multiplied at once, with any instruction set.
inline constexpr std::int64_t kDotLanes = 16;

// Line i of A in segment s begins at a[i * a_line + s * a_segment], line j of B at
// b[j][s * b_segment]; `steps` times kDotLanes elements of each are multiplied.
// to[i * to_row + j] = sum over the segments and elements of A's line i times B's line j.
struct DotOperands {
  std::int64_t segments = 0;
  std::int64_t steps = 0;
  const float* a = nullptr;
  std::int64_t a_line = 0;
  std::int64_t a_segment = 0;
  const float* const* b = nullptr;
  std::int64_t b_segment = 0;
  float* to = nullptr;
  std::int64_t to_row = 0;
};

// Each sum is formed in sixteen partials with fused multiply-adds and these are added in one order,
// whatever the tile: all give the same bits.
struct DotTile {
  static constexpr int kMostRows = 6;
  static constexpr int kMostColumns = 4;
  using Sum = void (*)(const DotOperands&);

  const char* instructions = "";           // as in /proc/cpuinfo
  int rows = 0;                            // lines of A at once, at most
  int columns = 0;                         // lines of B at once, at most
  Sum sums[kMostRows][kMostColumns] = {};  // of one row and column more than the index
};

// The quickest that this machine can run; AVX2's, which every machine can; AVX-512's, to be called
// only where the machine has it.
const DotTile& dot_tile();
DotTile dot_tile_avx2();
DotTile dot_tile_avx512();

}  // namespace trainscope::cpu
