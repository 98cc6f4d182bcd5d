// The tile of our GEMM in bf16 for AVX512_BF16, whose instruction multiplies two pairs of bf16 and
// adds both products to a sum in f32: twice the rate of f32.
#include <immintrin.h>

#include "kernels/cpu/gemm/gemm_tile_loop.h"

namespace trainscope::cpu {
namespace {

struct PairMultiplyAdd {
  template <typename Sum, typename Vector>
  static void add(Sum& sum, BFloat16Pair a, const Vector& b) {
    const __m512i both = _mm512_set1_epi32(static_cast<int>(a));
    sum = _mm512_dpbf16_ps(sum, (__m512bh)both, (__m512bh)b);
  }
};

}  // namespace

template <>
GemmTile<BFloat16> gemm_tile_avx512<BFloat16>() {
  return TileLoop<BFloat16, 64, 12, 2, PairMultiplyAdd>::tile("avx512_bf16");
}

}  // namespace trainscope::cpu
