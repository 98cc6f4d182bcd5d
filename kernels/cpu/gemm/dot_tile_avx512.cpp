// Tiles of dot products of lines for AVX-512: 24 of its 32 registers hold sums.
#include "kernels/cpu/gemm/dot_tile_loop.h"

namespace trainscope::cpu {

DotTile dot_tile_avx512() { return DotLoop<64, 6, 4>::tile("avx512f"); }

}  // namespace trainscope::cpu
