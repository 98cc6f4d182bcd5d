// Tiles of line products for AVX2 (12 of its 16 registers hold sums), and the choice between
// instruction sets.
#include "kernels/cpu/dot_tile.h"

#include "kernels/cpu/dot_tile_loop.h"

namespace trainscope::cpu {

DotTile dot_tile_avx2() { return DotLoop<32, 3, 2>::tile("avx2"); }

const DotTile& dot_tile() {
  static const DotTile kTile =
      __builtin_cpu_supports("avx512f") != 0 ? dot_tile_avx512() : dot_tile_avx2();
  return kTile;
}

}  // namespace trainscope::cpu
