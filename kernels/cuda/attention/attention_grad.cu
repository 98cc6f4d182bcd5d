// The gradient of attention: the weights of a tile are recomputed from its scores and the
// statistics of their rows, as in Dao et al., "FlashAttention" (2022). One kernel sums dk and dv
// over queries, a second one dq over keys, so that nothing is added up in an order of chance.
#include <cmath>
#include <cstdint>
#include <span>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_grad_call.h"
#include "kernels/cuda/attention/attention_tile.h"

namespace trainscope::cuda {
namespace {

// 64 queries and 64 keys, 4 x 4 scores a thread, or 4 x 8 where the sums of a head leave the
// registers for it. Measured on an H200, heads of 64 and of 128 elements: 2.66 and 4.08 ms by 4 x
// 4, 2.69 and 3.43 by 4 x 8; with dropout 2.76 and 3.36 of 64.
template <class Form>
using BackwardShape = TileShape<kTile, Form::kPanels == 2 ? 8 : 16>;

// Blocks whose registers a multiprocessor has at once.
template <class Form>
inline constexpr int kBackwardBlocks = Form::kPanels <= 2 ? 2 : 1;

// Of a tile: the weights that dropout left, and the gradient of the scores before they are scaled.
template <class Tile>
struct TileGradients {
  OwnTile<Tile> weights;
  OwnTile<Tile> dscores;
};

// Of four own columns of a row from j on: weights = exp(score - largest) * inverse sum; dscores =
// scale * (left * dy v' - weights * shift), where `left` are the weights after dropout.
struct GradientRow {
  float largest;
  float inverse;
  float shift;
};
template <class Tile, bool kDrops>
__device__ __forceinline__ void finish_four(const AttentionSizes& sizes, const ScoreTile& tile,
                                            std::uint64_t mask_key, const GradientRow& row, int i,
                                            int j, TileGradients<Tile>& own) {
  FourWords words{};
  if constexpr (kDrops) words = words_of<Tile>(sizes, mask_key, tile, i, j);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const bool seen = sees(sizes, tile.query + Tile::row(i), tile.key + Tile::column(j + k));
    float& score = own.weights[i][j + k];
    float& dscore = own.dscores[i][j + k];
    const float weight = seen ? std::exp(score - row.largest) * row.inverse : 0.0F;
    float left = weight;
    float difference = weight * (dscore - row.shift);
    if constexpr (kDrops) {
      left = sizes.mask.keeps(words.word[k]) ? weight * sizes.mask.scale : 0.0F;
      difference = left * dscore - weight * row.shift;
    }
    score = left;
    dscore = seen ? sizes.scale * difference : 0.0F;
  }
}

template <class Tile, bool kDrops, typename T>
__device__ __forceinline__ void finish_gradients(const GradientCall<T>& a, const ScoreTile& tile,
                                                 std::uint64_t mask_key, TileGradients<Tile>& own) {
  const AttentionSizes& sizes = a.sizes;
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
    const int query = tile.query + Tile::row(i);
    const std::int64_t number = sizes.row(tile.batch, tile.head, query);
    GradientRow row{0.0F, 0.0F, 0.0F};
    if (query < sizes.tokens) {
      row = {a.statistics[2 * number], a.statistics[2 * number + 1], a.shifts[number]};
    }
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; j += 4) {
      finish_four<Tile, kDrops>(sizes, tile, mask_key, row, i, j, own);
    }
  }
}

// The rows of a tile in the four matrices that both kernels multiply.
template <typename T>
struct TileOperands {
  TileRows<T> q;
  TileRows<T> dy;
  TileRows<T> k;
  TileRows<T> v;
};

template <typename T>
__device__ TileOperands<T> tile_operands(const GradientCall<T>& a, const ScoreTile& tile) {
  const AttentionSizes& sizes = a.sizes;
  const int shared_head = tile.head / (sizes.heads / sizes.kv_heads);
  const int queries = sizes.tokens - tile.query;
  const int keys = sizes.keys - tile.key;
  return {
      {a.x.q.head(tile.batch, tile.head, sizes.width).from(tile.query), queries},
      {a.dy.head(tile.batch, tile.head, sizes.width).from(tile.query), queries},
      {a.x.k.head(tile.batch, shared_head, sizes.width).from(tile.key), keys},
      {a.x.v.head(tile.batch, shared_head, sizes.width).from(tile.key), keys},
  };
}

template <class Tile, bool kDrops, typename T>
__device__ __forceinline__ void tile_gradients(const GradientCall<T>& a, const ScoreTile& tile,
                                               const TileOperands<T>& of, std::uint64_t mask_key,
                                               float* operands, TileGradients<Tile>& own) {
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; ++j) {
      own.weights[i][j] = 0.0F;
      own.dscores[i][j] = 0.0F;
    }
  }
  multiply_rows<Tile, T>(of.q, of.k, a.sizes.width, operands, own.weights);
  multiply_rows<Tile, T>(of.dy, of.v, a.sizes.width, operands, own.dscores);
  finish_scores<Tile>(a.sizes, tile, own.weights);
  finish_gradients<Tile, kDrops>(a, tile, mask_key, own);
}

// A block computes 64 keys of a head of k and v: dv = weights' dy and dk = dscores' q, summed over
// the queries that see them of all heads that share it, in order. FLOPs: 8 a score and element of a
// head, in whole tiles. Bytes: q, dy once for each tile of keys (from L2), dk and dv written once.
template <class Form, typename T>
__global__ void __launch_bounds__(BackwardShape<Form>::kThreads, kBackwardBlocks<Form>)
    attention_grad_keys(const GradientCall<T> a) {
  using Tile = BackwardShape<Form>;
  constexpr int kPanels = Form::kPanels;
  TRAINSCOPE_SHARED(float, operands, Tile::kOperands);
  TRAINSCOPE_SHARED(float, by_query, Tile::kWeights);  // [query, key]
  const AttentionSizes& sizes = a.sizes;
  const int item = static_cast<int>(blockIdx.x) / a.tiles;
  const int batch = item / sizes.kv_heads;
  const int shared_head = item % sizes.kv_heads;
  const int key = static_cast<int>(blockIdx.x) % a.tiles * kTile;
  const int per_group = sizes.heads / sizes.kv_heads;
  const std::uint64_t mask_key = Form::kDrops ? sizes.mask.key() : 0;

  OwnTile<Tile> dk[kPanels] = {};
  OwnTile<Tile> dv[kPanels] = {};
  for (int head = shared_head * per_group; head < (shared_head + 1) * per_group; ++head) {
    for (int query = sizes.causal ? key : 0; query < sizes.tokens; query += kTile) {
      const ScoreTile tile{.batch = batch, .head = head, .query = query, .key = key};
      const TileOperands<T> of = tile_operands(a, tile);
      TileGradients<Tile> own;
      tile_gradients<Tile, Form::kDrops>(a, tile, of, mask_key, operands, own);
      keep_by_row<Tile>(own.weights, by_query);
      add_weighted_rows<Tile, kPanels, T>(by_query, of.dy, sizes.width, operands, dv);
      __syncthreads();  // the weights have been read
      keep_by_row<Tile>(own.dscores, by_query);
      add_weighted_rows<Tile, kPanels, T>(by_query, of.q, sizes.width, operands, dk);
    }
  }
  const float ones[Tile::kOwnRows] = {1.0F, 1.0F, 1.0F, 1.0F};
  const int keys = sizes.keys - key;
  if (a.dx.k.data != nullptr) {
    store_rows<Tile, kPanels, T>(dk, ones, a.dx.k.head(batch, shared_head, sizes.width).from(key),
                                 keys, sizes.width);
  }
  if (a.dx.v.data != nullptr) {
    store_rows<Tile, kPanels, T>(dv, ones, a.dx.v.head(batch, shared_head, sizes.width).from(key),
                                 keys, sizes.width);
  }
}

// A block computes 64 queries of a head: dq = dscores k, summed over the keys that they see. Reads
// no row of q or dy but its own, which dq may take the place of. FLOPs: 6 a score and element.
template <class Form, typename T>
__global__ void __launch_bounds__(BackwardShape<Form>::kThreads, kBackwardBlocks<Form>)
    attention_grad_queries(const GradientCall<T> a) {
  using Tile = BackwardShape<Form>;
  constexpr int kPanels = Form::kPanels;
  TRAINSCOPE_SHARED(float, operands, Tile::kOperands);
  TRAINSCOPE_SHARED(float, by_key, Tile::kWeights);  // [key, query]
  const AttentionSizes& sizes = a.sizes;
  const int item = static_cast<int>(blockIdx.x) / a.tiles;
  ScoreTile tile{.batch = item / sizes.heads,
                 .head = item % sizes.heads,
                 .query = (a.tiles - 1 - static_cast<int>(blockIdx.x) % a.tiles) * kTile,
                 .key = 0};
  const int last = tile.query + kTile;
  const int keys = sizes.causal && last < sizes.keys ? last : sizes.keys;
  const std::uint64_t mask_key = Form::kDrops ? sizes.mask.key() : 0;

  OwnTile<Tile> dq[kPanels] = {};
  for (; tile.key < keys; tile.key += kTile) {
    const TileOperands<T> of = tile_operands(a, tile);
    TileGradients<Tile> own;
    tile_gradients<Tile, Form::kDrops>(a, tile, of, mask_key, operands, own);
    keep_by_column<Tile>(own.dscores, by_key);
    add_weighted_rows<Tile, kPanels, T>(by_key, of.k, sizes.width, operands, dq);
  }
  const float ones[Tile::kOwnRows] = {1.0F, 1.0F, 1.0F, 1.0F};
  store_rows<Tile, kPanels, T>(dq, ones,
                               a.dx.q.head(tile.batch, tile.head, sizes.width).from(tile.query),
                               sizes.tokens - tile.query, sizes.width);
}

template <typename T>
void run_grad(const RunArgs& args) {
  const GradientCall<T> call = gradient_call<T>(args);
  with_form(call.sizes, [&]<class Form>(Form) {
    launch_gradients(args.call, call, {.threads = dim3(BackwardShape<Form>::kThreads)},
                     attention_grad_keys<Form, T>, attention_grad_queries<Form, T>);
  });
}

Support supports_grad(const PrepareArgs& args) {
  return supports_attention(args.params, args.inputs.subspan(kForwardInputs));
}

template <typename T>
void add_grad_for(KernelTable& table) {
  table.add("AttentionGrad", kDTypeOf<T>,
            {.name = "attention_grad.cuda",
             .supports = supports_grad,
             .prepare = prepare_gradient,
             .run = run_grad<T>});
}

}  // namespace

void add_attention_grad(KernelTable& table) {
  add_grad_for<float>(table);
  add_grad_for<BFloat16>(table);
  add_grad_for<Float16>(table);
  add_attention_grad_tensor(table);
}

}  // namespace trainscope::cuda
