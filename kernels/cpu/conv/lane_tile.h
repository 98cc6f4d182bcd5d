// Sums over runs of lines of lanes that share nothing, in registers, once for each instruction set.
#pragma once

#include <cstdint>

namespace trainscope::cpu {

// Elements of a line, with any instruction set.
inline constexpr std::int64_t kTileLanes = 32;

// Run r reads `steps` lines at lines[r * line_run], one after the other, and as many sets of
// factors at factors[r * factor_run], one factor for each sum. to[c * to_row + lane] = sum over
// runs and steps of factor c of a set times its line's lane.
struct LaneOperands {
  std::int64_t runs = 0;
  std::int64_t steps = 0;
  const float* factors = nullptr;
  std::int64_t factor_run = 0;
  const float* lines = nullptr;
  std::int64_t line_run = 0;
  float* to = nullptr;
  std::int64_t to_row = 0;
};

// Each element's sum is formed with fused multiply-adds in the order of runs and steps.
struct LaneTile {
  static constexpr int kMostSums = 6;
  using Sum = void (*)(const LaneOperands&);

  const char* instructions = "";  // as in /proc/cpuinfo
  Sum sums[kMostSums] = {};       // of one factor more in a set than the index
};

// The quickest that this machine can run; AVX2's, which every machine can; AVX-512's, to be called
// only where the machine has it.
const LaneTile& lane_tile();
LaneTile lane_tile_avx2();
LaneTile lane_tile_avx512();

}  // namespace trainscope::cpu
