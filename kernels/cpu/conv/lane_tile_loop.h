// The one source of the sums over lines of lanes, compiled for each instruction set. Nothing in
// here may be shared between the files that include it (see gemm_tile_loop.h).
#pragma once

#include "kernels/cpu/conv/lane_tile.h"

namespace trainscope::cpu {
namespace {

// kBytes: of a register. Two registers of lanes at once.
template <int kBytes>
struct LaneLoop {
  using Vector [[gnu::vector_size(kBytes)]] = float;
  static constexpr int kVectors = 2;
  static constexpr std::int64_t kLanes = kBytes / static_cast<std::int64_t>(sizeof(float));

  template <int kSums>
  static void run(const LaneOperands& all) {
    for (std::int64_t lane = 0; lane < kTileLanes; lane += kVectors * kLanes) {
      Vector sums[kSums][kVectors] = {};
      for (std::int64_t r = 0; r < all.runs; ++r) {
        add_run(all.steps, all.factors + r * all.factor_run, all.lines + r * all.line_run + lane,
                sums);
      }
#pragma GCC unroll 6
      for (int c = 0; c < kSums; ++c) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          __builtin_memcpy(all.to + c * all.to_row + lane + v * kLanes, &sums[c][v], kBytes);
        }
      }
    }
  }

  template <int kSums>
  static void add_run(std::int64_t steps, const float* factors, const float* line,
                      Vector (&sums)[kSums][kVectors]) {
    for (std::int64_t step = 0; step < steps; ++step) {
      Vector lanes[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) __builtin_memcpy(&lanes[v], line + v * kLanes, kBytes);
#pragma GCC unroll 6
      for (int c = 0; c < kSums; ++c) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[c][v] += factors[c] * lanes[v];
      }
      factors += kSums;
      line += kTileLanes;
    }
  }

  static LaneTile tile(const char* instructions) {
    static_assert(LaneTile::kMostSums == 6);
    return {.instructions = instructions, .sums = {run<1>, run<2>, run<3>, run<4>, run<5>, run<6>}};
  }
};

}  // namespace
}  // namespace trainscope::cpu
