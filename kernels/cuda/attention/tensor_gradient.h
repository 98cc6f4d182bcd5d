// What attention's gradient on tensor cores makes of a fragment of scores: weights and the
// gradients of dot products.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_grad_call.h"
#include "kernels/cuda/attention/tensor_tile.h"

namespace trainscope::cuda {

// Of one query: e^(score - largest) * inverse is its weight.
struct alignas(16) QueryRow {
  float largest;
  float largest_log2;  // times kLog2OfE
  float inverse;
  float shift;
};

template <typename T>
__device__ __forceinline__ QueryRow query_row(const GradientCall<T>& a, const TensorScores& tile,
                                              int query) {
  if (query >= a.sizes.tokens) return {0.0F, 0.0F, 0.0F, 0.0F};
  const std::int64_t number = a.sizes.row(tile.batch, tile.head, query);
  const float* const statistics = a.statistics + 2 * number;
  return {statistics[0], statistics[0] * kLog2OfE, statistics[1], a.shifts[number]};
}

// Of `power`, e^(score - largest): the weight that dropout left, and the gradient of the dot
// product, which is left * (dy v') - full * shift. It lacks the scale: dk and dq are multiplied
// with that when they are whole.
template <bool kDrops>
__device__ __forceinline__ void weigh(const AttentionSizes& sizes, bool kept, const QueryRow& row,
                                      float power, float& weight, float& gradient) {
  const float full = power * row.inverse;
  weight = full;
  if constexpr (kDrops) {
    weight = kept ? full * sizes.mask.scale : 0.0F;
    gradient = std::fma(weight, gradient, -full * row.shift);
  } else {
    gradient = full * (gradient - row.shift);
  }
}

// A thread's elements of fragment n of a tile of scores: dot products of query and key, and of dy
// and value, become the two. `query` and `key` of element i are those of element 0 and i % 2 and
// i / 2 * 8 more, the other way round by key. kPlain: is_plain() of the tile.
template <bool kPlain, bool kDrops, bool kByKey>
__device__ __forceinline__ void finish_fragment(const AttentionSizes& sizes,
                                                const TensorScores& tile, int query, int key,
                                                bool whole, unsigned kept, int n,
                                                const QueryRow (&rows)[2], FragmentC& weights,
                                                FragmentC& gradients) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const QueryRow& row = rows[kByKey ? i % 2 : i / 2];
    const int q = query + (kByKey ? i % 2 : i / 2 * 8);
    const int k = key + (kByKey ? i / 2 * 8 : i % 2);
    float& weight = weights.values[i];
    float& gradient = gradients.values[i];
    const bool seen = kPlain || is_seen(sizes, whole, q, k);
    float power = 0.0F;
    if constexpr (kPlain) {
      power = shifted_exp_of_dot(weight, sizes.scale * kLog2OfE, row.largest_log2);
    } else if (seen) {
      power = shifted_exp(score_of(sizes, tile, q, k, weight), row.largest);
    }
    weigh<kDrops>(sizes, is_kept(kept, n, i), row, power, weight, gradient);
    if (!seen) weight = gradient = 0.0F;
  }
}

}  // namespace trainscope::cuda
