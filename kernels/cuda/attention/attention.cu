// Attention by tiles of 64 queries and 64 keys: the scores of a tile, their softmax over the tiles
// so far, the matmul of this with the values, as in Dao et al., "FlashAttention" (2022).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_tile.h"

namespace trainscope::cuda {

AttentionSizes attention_sizes(const Params& params, std::span<const TensorView> inputs) {
  const auto& attention = std::get<AttentionParams>(params);
  const Shape& q = inputs[0].shape();
  const std::int64_t keys = attention.packed ? q[1] : inputs[1].shape()[1];
  AttentionSizes sizes{.batch = static_cast<int>(q[0]),
                       .tokens = static_cast<int>(q[1]),
                       .keys = static_cast<int>(keys),
                       .heads = static_cast<int>(attention.heads),
                       .kv_heads = static_cast<int>(attention.kv_heads),
                       .width = static_cast<int>(q[3]),
                       .causal = attention.causal,
                       .scale = static_cast<float>(attention.scale)};
  if (has_view(inputs, 3)) {
    const Shape& bias = inputs[3].shape();
    sizes.bias = inputs[3].as<const float>();
    std::int64_t stride = 1;
    for (int axis = bias.rank - 1; axis >= 0; --axis) {
      sizes.bias_strides[axis + 4 - bias.rank] = bias[axis] == 1 ? 0 : stride;
      stride *= bias[axis];
    }
  }
  if (attention.dropout.ratio != 0.0) {
    sizes.mask = dropout_mask(attention.dropout, inputs[4].as<const std::int64_t>());
  }
  return sizes;
}

Support supports_attention(const Params& params, std::span<const TensorView> inputs) {
  constexpr std::int64_t kMost = 0x7FFFFF00;
  const auto& attention = std::get<AttentionParams>(params);
  const Shape& q = inputs[0].shape();
  if (q[3] > kMostHeadWidth) return {"a head is wider than 256"};
  const std::int64_t keys = attention.packed ? q[1] : inputs[1].shape()[1];
  if (q[1] > kMost || keys > kMost) return {"2^31 tokens or more"};
  const std::int64_t tiles = tiles_of(static_cast<int>(std::max(q[1], keys)), kTile);
  return supported_if(q[0] * attention.heads * tiles <= kMost,
                      "more tiles than a launch may have blocks");
}

namespace {

// 64 queries, 4 x 4 scores a thread, or 4 x 8 where a head is wider. Measured on an H200, causal
// heads of 64 and of 128 elements: 0.83 and 1.35 ms by 4 x 4, 0.94 (by 8 x 8) and 1.01 by 4 x 8.
template <class Form>
using ForwardShape = TileShape<kTile, Form::kPanels == 1 ? 16 : 8>;

// Blocks whose registers a multiprocessor has at once.
template <class Form>
inline constexpr int kForwardBlocks = Form::kPanels == 2 ? 3 : 2;

// What is known of own rows after some tiles of keys.
template <class Tile>
struct RowsSoFar {
  float largest[Tile::kOwnRows];
  float sum[Tile::kOwnRows];     // of exp(score - largest): of all threads of a row the same
  float factor[Tile::kOwnRows];  // what earlier sums are multiplied with
};

// Over the threads that own the same rows.
template <class Tile>
__device__ inline float row_max(float value) {
#pragma unroll
  for (int other = Tile::kAcross / 2; other > 0; other /= 2) {
    const float theirs = __shfl_xor_sync(kWholeWarp, value, other);
    value = theirs > value ? theirs : value;
  }
  return value;
}
template <class Tile>
__device__ inline float row_sum(float value) {
#pragma unroll
  for (int other = Tile::kAcross / 2; other > 0; other /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, other);
  }
  return value;
}

// Scores become exp(score - largest so far); what a query does not see becomes 0, also where all
// its scores so far are -inf. A NaN stays one.
template <class Tile>
__device__ inline void exponentials(OwnTile<Tile>& scores, RowsSoFar<Tile>& rows) {
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
    float largest = rows.largest[i];
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; ++j) {
      largest = scores[i][j] > largest ? scores[i][j] : largest;
    }
    largest = row_max<Tile>(largest);
    rows.factor[i] = largest == rows.largest[i] ? 1.0F : std::exp(rows.largest[i] - largest);
    rows.largest[i] = largest;
    float sum = 0.0F;
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; ++j) {
      scores[i][j] = scores[i][j] == -INFINITY ? 0.0F : std::exp(scores[i][j] - largest);
      sum += scores[i][j];
    }
    rows.sum[i] = rows.sum[i] * rows.factor[i] + row_sum<Tile>(sum);
  }
}

// Dropout takes weights away; those that it keeps are scaled with the result.
template <class Tile>
__device__ inline void drop_weights(const AttentionSizes& sizes, std::uint64_t key,
                                    const ScoreTile& tile, OwnTile<Tile>& weights) {
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; j += 4) {
      const FourWords words = words_of<Tile>(sizes, key, tile, i, j);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (!sizes.mask.keeps(words.word[k])) weights[i][j + k] = 0.0F;
      }
    }
  }
}

// The statistics of own rows, and what their sums are multiplied with.
template <class Tile, typename T>
__device__ inline void finish_rows(const AttentionCall<T>& a, const ScoreTile& tile,
                                   RowsSoFar<Tile>& rows) {
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
    // A row of -inf gives NaN.
    const float inverse = rows.largest[i] == -INFINITY ? NAN : 1.0F / rows.sum[i];
    rows.factor[i] = inverse * a.sizes.mask.scale;
    const int query = tile.query + Tile::row(i);
    if (a.statistics == nullptr || Tile::across() != 0 || query >= a.sizes.tokens) continue;
    float* const to = a.statistics + 2 * a.sizes.row(tile.batch, tile.head, query);
    to[0] = rows.largest[i];
    to[1] = inverse;
  }
}

// A block computes the queries of a tile, the last ones first: they see most keys. FLOPs: 4 a score
// and element of a head, in whole tiles. Bytes: q once for each tile of keys and k, v once for each
// tile of queries (from L2), y and the statistics written once. 35 KiB of shared memory.
template <class Form, typename T>
__global__ void __launch_bounds__(ForwardShape<Form>::kThreads, kForwardBlocks<Form>)
    attention_tiles(const AttentionCall<T> a) {
  using Tile = ForwardShape<Form>;
  constexpr int kPanels = Form::kPanels;
  TRAINSCOPE_SHARED_DYNAMIC(float, operands);
  float* const weights = operands + Tile::kOperands;  // [key, query]
  const AttentionSizes& sizes = a.sizes;
  const int item = static_cast<int>(blockIdx.x) / a.tiles;
  ScoreTile tile{.batch = item / sizes.heads,
                 .head = item % sizes.heads,
                 .query = (a.tiles - 1 - static_cast<int>(blockIdx.x) % a.tiles) * Tile::kRows,
                 .key = 0};
  const int shared_head = tile.head / (sizes.heads / sizes.kv_heads);
  const auto q = a.x.q.head(tile.batch, tile.head, sizes.width);
  const auto k = a.x.k.head(tile.batch, shared_head, sizes.width);
  const auto v = a.x.v.head(tile.batch, shared_head, sizes.width);
  const TileRows<T> queries{q.from(tile.query), sizes.tokens - tile.query};
  const int last = tile.query + Tile::kRows;
  const int keys = sizes.causal && last < sizes.keys ? last : sizes.keys;
  const std::uint64_t mask_key = Form::kDrops ? sizes.mask.key() : 0;

  RowsSoFar<Tile> rows;
  for (int i = 0; i < Tile::kOwnRows; ++i) {
    rows.largest[i] = -INFINITY;
    rows.sum[i] = 0.0F;
  }
  OwnTile<Tile> sums[kPanels] = {};
  for (; tile.key < keys; tile.key += kTile) {
    OwnTile<Tile> scores = {};
    const int count = keys - tile.key;
    multiply_rows<Tile, T>(queries, {k.from(tile.key), count}, sizes.width, operands, scores);
    finish_scores<Tile>(sizes, tile, scores);
    exponentials<Tile>(scores, rows);
    if constexpr (Form::kDrops) drop_weights<Tile>(sizes, mask_key, tile, scores);
    keep_by_column<Tile>(scores, weights);
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
#pragma unroll
      for (int i = 0; i < Tile::kOwnRows; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::kOwnColumns; ++j) sums[panel][i][j] *= rows.factor[i];
      }
    }
    add_weighted_rows<Tile, kPanels, T>(weights, {v.from(tile.key), count}, sizes.width, operands,
                                        sums);
  }
  finish_rows<Tile>(a, tile, rows);
  store_rows<Tile, kPanels, T>(sums, rows.factor,
                               a.y.head(tile.batch, tile.head, sizes.width).from(tile.query),
                               queries.count, sizes.width);
}

template <typename T>
void run_attention(const RunArgs& args) {
  const AttentionCall<T> call = attention_call<T>(args);
  const AttentionSizes& sizes = call.sizes;
  with_form(sizes, [&]<class Form>(Form) {
    using Tile = ForwardShape<Form>;
    launch_tiles(args.call, call, sizes.tokens, Tile::kRows, sizes.heads,
                 {.threads = dim3(Tile::kThreads), .shared_bytes = Tile::kSharedBytes},
                 attention_tiles<Form, T>);
  });
}

Support supports_forward(const PrepareArgs& args) {
  return supports_attention(args.params, args.inputs);
}

template <typename T>
void add_attention_for(KernelTable& table) {
  table.add("Attention", kDTypeOf<T>,
            {.name = "attention.cuda", .supports = supports_forward, .run = run_attention<T>});
}

}  // namespace

void add_attention(KernelTable& table) {
  add_attention_for<float>(table);
  add_attention_for<BFloat16>(table);
  add_attention_for<Float16>(table);
  add_attention_tensor(table);  // preferred where it takes a call
  add_attention_grad(table);
}

}  // namespace trainscope::cuda
