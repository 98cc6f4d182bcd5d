// Sums over lines of lanes for AVX-512.
#include "kernels/cpu/conv/lane_tile_loop.h"

namespace trainscope::cpu {

LaneTile lane_tile_avx512() { return LaneLoop<64>::tile("avx512f"); }

}  // namespace trainscope::cpu
