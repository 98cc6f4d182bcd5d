// Sums over pixels for some taps with AVX-512: 24 of its 32 registers hold sums.
#include "kernels/cpu/conv/tap_tile_loop.h"

namespace trainscope::cpu {

TapTile tap_tile_avx512() { return TapLoop<64, 8>::tile("avx512f"); }

}  // namespace trainscope::cpu
