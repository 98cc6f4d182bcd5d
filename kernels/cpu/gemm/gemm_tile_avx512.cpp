// Tiles of our GEMM for AVX-512: 24 of its 32 registers hold sums.
#include "kernels/cpu/gemm/gemm_tile_loop.h"

namespace trainscope::cpu {

template <>
GemmTile<float> gemm_tile_avx512<float>() {
  return TileLoop<float, 64, 12, 2>::tile("avx512f");
}
template <>
GemmTile<double> gemm_tile_avx512<double>() {
  return TileLoop<double, 64, 12, 2>::tile("avx512f");
}

}  // namespace trainscope::cpu
