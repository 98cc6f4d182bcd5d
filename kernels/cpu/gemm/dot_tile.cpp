// Tiles of dot products of lines for AVX2 (12 of its 16 registers hold sums), and the choice
// between instruction sets.
#include "kernels/cpu/gemm/dot_tile.h"

#include "kernels/cpu/gemm/dot_tile_loop.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

DotTile dot_tile_avx2() { return DotLoop<32, 3, 2>::tile("avx2"); }

const DotTile& dot_tile() {
  static const DotTile kTile = has_avx512() ? dot_tile_avx512() : dot_tile_avx2();
  return kTile;
}

}  // namespace trainscope::cpu
