// Sums over the pixels of planes, for some elements of a convolution's kernel at once, in
// registers, once for each instruction set.
#pragma once

#include <cstdint>

namespace trainscope::cpu {

// Pixels (e, r, c) of `examples` planes of `rows` rows of `columns`; dy [examples, rows, columns,
// TapTile::rows] is consecutive, and the lanes of x that tap t meets there begin at
// x[taps[t] + e * x_example + r * x_row + c * x_column]. sums[i * sums_row + t * lanes + lane], for
// the first `kept` lines i of dy, becomes (where `added`: grows by) the sum over all pixels of
// element i of dy times this lane.
struct TapOperands {
  static constexpr int kMostTaps = 3;

  std::int64_t examples = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  std::int64_t x_example = 0;
  std::int64_t x_row = 0;
  std::int64_t x_column = 0;
  std::int64_t taps[kMostTaps] = {};
  float* sums = nullptr;
  std::int64_t sums_row = 0;
  std::int64_t kept = 0;
  bool added = false;
};

// Each element's sum is formed in the order of pixels, in optimised builds with fused
// multiply-adds: the same bits, whatever the tile.
struct TapTile {
  static constexpr std::int64_t kMostLanes = 16;

  using Sum = void (*)(const TapOperands&);

  const char* instructions = "";          // as in /proc/cpuinfo
  std::int64_t rows = 0;                  // lines of dy
  std::int64_t lanes = 0;                 // of x
  Sum sums[TapOperands::kMostTaps] = {};  // of one tap more than the index
};

// The quickest that this machine can run; AVX2's, which every machine can; AVX-512's, to be called
// only where the machine has it.
const TapTile& tap_tile();
TapTile tap_tile_avx2();
TapTile tap_tile_avx512();

}  // namespace trainscope::cpu
