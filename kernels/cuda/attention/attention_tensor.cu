// Attention of two-byte elements on tensor cores, by tiles of keys, as in Dao, "FlashAttention-2"
// (2023): scores, their softmax so far and the weighted values of a tile stay in registers.
#include <cmath>
#include <cstdint>
#include <span>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/tensor_tile.h"

namespace trainscope::cuda {
namespace {

// A warp has 32 queries, or 16 where wider heads leave no registers for more.
template <class Form>
struct ForwardTensorShape : TensorShape<Form> {
  static constexpr int kRowTiles = Form::kPanels == 1 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kRowTiles;
  static constexpr int kRows = kTensorThreads / kWarp * kWarpRows;
  static constexpr int kQueryElements = kRows * ForwardTensorShape::kPitch;
  static constexpr std::size_t kSharedBytes =
      (kQueryElements + 2 * ForwardTensorShape::kTileElements) * 2;
};

// What is known of a thread's two rows of a fragment after some tiles of keys.
struct TwoRows {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};  // of e^(score - largest) of own columns
};

// Dot products become e^(score - largest so far), 0 of what is not seen; sums so far are scaled to
// it. A NaN stays one.
template <class Shape>
__device__ __forceinline__ void soften(const AttentionSizes& sizes, const TensorScores& tile,
                                       int query, bool whole, unsigned kept, TwoRows& rows,
                                       FragmentC (&scores)[kTileColumns],
                                       FragmentC (&sums)[Shape::kColumns]) {
  float largest[2] = {-INFINITY, -INFINITY};
  const bool plain = is_plain(sizes, tile, whole);
  if (plain) {
#pragma unroll
    for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        largest[i / 2] = maximum_number(scores[n].values[i], largest[i / 2]);
      }
    }
  } else {
#pragma unroll
    for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores[n].values[i];
        const int q = query + lane_row() + i / 2 * 8;
        const int k = tile.key + n * 8 + lane_column() + i % 2;
        score = is_seen(sizes, whole, q, k) ? score_of(sizes, tile, q, k, score) : -INFINITY;
        largest[i / 2] = maximum_number(score, largest[i / 2]);
      }
    }
  }
  float shift[2];
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int other = 1; other < 4; other *= 2) {
      largest[half] =
          maximum_number(__shfl_xor_sync(kWholeWarp, largest[half], other), largest[half]);
    }
    const float before = rows.largest[half];
    const float now = maximum_number(plain ? largest[half] * sizes.scale : largest[half], before);
    factor[half] = now == before ? 1.0F : shifted_exp(before, now);
    shift[half] = now == -INFINITY ? 0.0F : now;
    rows.largest[half] = now;
    rows.sum[half] *= factor[half];
  }
  const auto weigh = [&](auto power) {
#pragma unroll
    for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float weight = power(scores[n].values[i], i / 2);
        rows.sum[i / 2] += weight;
        scores[n].values[i] = is_kept(kept, n, i) ? weight : 0.0F;
      }
    }
  };
  if (plain) {
    const float scale_log2 = sizes.scale * kLog2OfE;
    const float shift_log2[2] = {shift[0] * kLog2OfE, shift[1] * kLog2OfE};
    weigh(
        [&](float dot, int half) { return shifted_exp_of_dot(dot, scale_log2, shift_log2[half]); });
  } else {
    weigh([&](float score, int half) { return shifted_exp(score, shift[half]); });
  }
#pragma unroll
  for (int c = 0; c < Shape::kColumns; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[c].values[i] *= factor[i / 2];
  }
}

// The statistics of own two rows, and what their sums are multiplied with.
template <typename T>
__device__ __forceinline__ void finish_two_rows(const AttentionCall<T>& a, const TensorScores& tile,
                                                int query, TwoRows& rows, float (&factor)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int other = 1; other < 4; other *= 2) {
      rows.sum[half] += __shfl_xor_sync(kWholeWarp, rows.sum[half], other);
    }
    // A row of -inf gives NaN.
    const float inverse = rows.largest[half] == -INFINITY ? NAN : 1.0F / rows.sum[half];
    factor[half] = inverse * a.sizes.mask.scale;
    const int q = query + lane_row() + 8 * half;
    if (a.statistics == nullptr || lane_column() != 0 || q >= a.sizes.tokens) continue;
    float* const to = a.statistics + 2 * a.sizes.row(tile.batch, tile.head, q);
    to[0] = rows.largest[half];
    to[1] = inverse;
  }
}

// A block computes 128 queries (64 of heads wider than 64), the last ones first: they see most
// keys. While the keys of a tile are multiplied its values arrive, and while these are weighted the
// next keys. FLOPs: 4 a score and element of a head, in whole tiles. Bytes: k, v once for each tile
// of queries (from L2), q, y and the statistics once. 37 or 52 KB of shared memory. Weights of
// keys that a query does not see are 0, and are multiplied all the same: a value that is not finite
// spoils the queries of whole tiles.
template <class Form, typename T>
__global__ void __launch_bounds__(kTensorThreads, 2) attention_tensor(const AttentionCall<T> a) {
  using Shape = ForwardTensorShape<Form>;
  TRAINSCOPE_SHARED_DYNAMIC(T, shared);
  T* const of_queries = shared;
  T* const of_keys = of_queries + Shape::kQueryElements;
  T* const of_values = of_keys + Shape::kTileElements;
  const AttentionSizes& sizes = a.sizes;
  const int item = static_cast<int>(blockIdx.x) / a.tiles;
  TensorScores tile{.batch = item / sizes.heads,
                    .head = item % sizes.heads,
                    .query = (a.tiles - 1 - static_cast<int>(blockIdx.x) % a.tiles) * Shape::kRows,
                    .key = 0,
                    .bias = nullptr};
  tile.bias = bias_of_head(sizes, tile.batch, tile.head);
  const int shared_head = tile.head / (sizes.heads / sizes.kv_heads);
  const auto q = a.x.q.head(tile.batch, tile.head, sizes.width).from(tile.query);
  const auto k = a.x.k.head(tile.batch, shared_head, sizes.width);
  const auto v = a.x.v.head(tile.batch, shared_head, sizes.width);
  const int last = tile.query + Shape::kRows;
  const int keys = sizes.causal && last < sizes.keys ? last : sizes.keys;
  const std::uint64_t mask_key = Form::kDrops ? sizes.mask.key() : 0;
  const int own_row = own_warp() * Shape::kWarpRows;

  AsyncCopies copies;
  const auto load = [&](const HeadRows<const T>& from, int first, T* to) {
    load_rows<Shape, kTile>(copies, from.from(first), keys - first, sizes.width, a.wide, to);
    copies.close_group();
  };
  load_rows<Shape, Shape::kRows>(copies, q, sizes.tokens - tile.query, sizes.width, a.wide,
                                 of_queries);
  load(k, 0, of_keys);
  copies.wait<0>();
  __syncthreads();
  FragmentA queries[Shape::kRowTiles][Shape::kDepths];
#pragma unroll
  for (int m = 0; m < Shape::kRowTiles; ++m) {
#pragma unroll
    for (int d = 0; d < Shape::kDepths; ++d) {
      queries[m][d] = rows_as_a<Shape::kPitch>(of_queries, own_row + 16 * m, d * kDepth);
    }
  }

  TwoRows rows[Shape::kRowTiles];
  FragmentC sums[Shape::kRowTiles][Shape::kColumns] = {};
  for (; tile.key < keys; tile.key += kTile) {
    load(v, tile.key, of_values);
    const bool whole = tile.whole(sizes, Shape::kRows);
    unsigned kept[Shape::kRowTiles];
#pragma unroll
    for (int m = 0; m < Shape::kRowTiles; ++m) {
      kept[m] = kAllKept;
      if constexpr (Form::kDrops) {
        kept[m] =
            kept_in_tile<false>(sizes, mask_key, tile, tile.query + own_row + 16 * m, tile.key);
      }
    }
    FragmentC scores[Shape::kRowTiles][kTileColumns] = {};
#pragma unroll
    for (int d = 0; d < Shape::kDepths; ++d) {
#pragma unroll
      for (int n = 0; n < kTileColumns; n += 2) {
        const TwoFragmentsB b = rows_as_columns<Shape::kPitch>(of_keys, n * 8, d * kDepth);
#pragma unroll
        for (int m = 0; m < Shape::kRowTiles; ++m) {
          multiply_add<T>(scores[m][n], queries[m][d], b.fragments[0]);
          multiply_add<T>(scores[m][n + 1], queries[m][d], b.fragments[1]);
        }
      }
    }
#pragma unroll
    for (int m = 0; m < Shape::kRowTiles; ++m) {
      soften<Shape>(sizes, tile, tile.query + own_row + 16 * m, whole, kept[m], rows[m], scores[m],
                    sums[m]);
    }
    copies.wait<0>();
    __syncthreads();  // the values are there, and the keys have been read
    if (tile.key + kTile < keys) load(k, tile.key + kTile, of_keys);
#pragma unroll
    for (int d = 0; d < kTileDepths; ++d) {
      FragmentA weights[Shape::kRowTiles];
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) {
        weights[m] = weights_as_a<T>(scores[m][2 * d], scores[m][2 * d + 1]);
      }
#pragma unroll
      for (int c = 0; c < Shape::kColumns; c += 2) {
        const TwoFragmentsB b = rows_as_rows<Shape::kPitch>(of_values, d * kDepth, c * 8);
#pragma unroll
        for (int m = 0; m < Shape::kRowTiles; ++m) {
          multiply_add<T>(sums[m][c], weights[m], b.fragments[0]);
          multiply_add<T>(sums[m][c + 1], weights[m], b.fragments[1]);
        }
      }
    }
    copies.wait<0>();
    __syncthreads();  // the next keys are there, and the values have been read
  }
#pragma unroll
  for (int m = 0; m < Shape::kRowTiles; ++m) {
    float factor[2];
    finish_two_rows(a, tile, tile.query + own_row + 16 * m, rows[m], factor);
    store_fragments<Shape, T>(sums[m], factor,
                              a.y.head(tile.batch, tile.head, sizes.width).from(tile.query),
                              own_row + 16 * m, sizes.tokens - tile.query, sizes.width, a.wide);
  }
}

template <typename T>
void run_tensor(const RunArgs& args) {
  AttentionCall<T> call = attention_call<T>(args);
  const AttentionSizes& sizes = call.sizes;
  call.wide = copies_wide(call.x.q, sizes.width) && copies_wide(call.x.k, sizes.width) &&
              copies_wide(call.x.v, sizes.width) && copies_wide(call.y, sizes.width);
  with_form<kMostTensorPanels>(sizes, [&]<class Form>(Form) {
    using Shape = ForwardTensorShape<Form>;
    launch_tiles(args.call, call, sizes.tokens, Shape::kRows, sizes.heads,
                 {.threads = dim3(kTensorThreads), .shared_bytes = Shape::kSharedBytes},
                 attention_tensor<Form, T>);
  });
}

Support supports_forward(const PrepareArgs& args) {
  return supports_tensor_attention(args.params, args.inputs);
}

template <typename T>
void add_tensor_for(KernelTable& table) {
  table.add("Attention", kDTypeOf<T>,
            {.name = "attention.tensor", .supports = supports_forward, .run = run_tensor<T>});
}

}  // namespace

Support supports_tensor_attention(const Params& params, std::span<const TensorView> inputs) {
  if (inputs[0].shape()[3] > kMostTensorPanels * kTile) return {"a head is wider than 128"};
  return supports_attention(params, inputs);
}

void add_attention_tensor(KernelTable& table) {
  add_tensor_for<BFloat16>(table);
  add_tensor_for<Float16>(table);
}

}  // namespace trainscope::cuda
