// Tiles of our GEMM for AVX2 (12 of its 16 registers hold sums), and the choice between
// instruction sets.
#include "kernels/cpu/gemm/gemm_tile.h"

#include <array>

#include "kernels/cpu/gemm/gemm_tile_loop.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

template <typename T>
std::span<const GemmTile<T>> gemm_tiles() {
  static const bool kWide = has_avx512();
  static const GemmTile<T> kNarrow = TileLoop<T, 32, 4, 3>::tile("avx2");
  static const std::array<GemmTile<T>, 2> kAll = {kWide ? gemm_tile_avx512<T>() : kNarrow, kNarrow};
  return std::span(kAll).subspan(kWide ? 0 : 1);
}

template <>
std::span<const GemmTile<BFloat16>> gemm_tiles<BFloat16>() {
  static const bool kHas = prefers_avx512_bf16();
  static const GemmTile<BFloat16> kTile =
      kHas ? gemm_tile_avx512<BFloat16>() : GemmTile<BFloat16>{};
  return {&kTile, kHas ? 1U : 0U};
}

template <typename T>
const GemmTile<T>& tile_in_place() {
  static const GemmTile<T> kTile =
      has_avx512() ? gemm_tile_avx512<T>() : TileLoop<T, 32, 6, 2>::tile("avx2");
  return kTile;
}

template <>
const GemmTile<BFloat16>& tile_in_place<BFloat16>() {
  return gemm_tiles<BFloat16>().front();
}

template const GemmTile<float>& tile_in_place<float>();
template const GemmTile<double>& tile_in_place<double>();
template std::span<const GemmTile<float>> gemm_tiles<float>();
template std::span<const GemmTile<double>> gemm_tiles<double>();

}  // namespace trainscope::cpu
