// Sums over pixels for some taps with AVX2 (12 of its 16 registers hold sums), and the choice
// between instruction sets.
#include "kernels/cpu/conv/tap_tile.h"

#include "kernels/cpu/conv/tap_tile_loop.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

TapTile tap_tile_avx2() { return TapLoop<32, 4>::tile("avx2"); }

const TapTile& tap_tile() {
  static const TapTile kTile = has_avx512() ? tap_tile_avx512() : tap_tile_avx2();
  return kTile;
}

}  // namespace trainscope::cpu
