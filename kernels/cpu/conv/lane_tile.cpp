// Sums over lines of lanes for AVX2, and the choice between instruction sets.
#include "kernels/cpu/conv/lane_tile.h"

#include "kernels/cpu/conv/lane_tile_loop.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

LaneTile lane_tile_avx2() { return LaneLoop<32>::tile("avx2"); }

const LaneTile& lane_tile() {
  static const LaneTile kTile = has_avx512() ? lane_tile_avx512() : lane_tile_avx2();
  return kTile;
}

}  // namespace trainscope::cpu
