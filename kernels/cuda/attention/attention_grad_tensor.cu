// The gradient of attention of two-byte elements on tensor cores: weights and their gradients are
// recomputed tile by tile, as in Dao, "FlashAttention-2" (2023). One kernel sums dk and dv over
// queries, with scores [key, query], a second one dq over keys, so that nothing is added up in an
// order of chance and what a warp multiplies next are its own registers. Weights and their
// gradients are rounded to the elements' type for that: in f16 the gradient of a dot product,
// before it is multiplied with the scale, becomes infinite beyond 65504, which skips the step and
// lowers the loss scale.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_grad_call.h"
#include "kernels/cuda/attention/tensor_gradient.h"
#include "kernels/cuda/attention/tensor_tile.h"

namespace trainscope::cuda {
namespace {

constexpr int kWarpRows = 16;  // keys or queries of a warp, 64 of a block

// Shared memory: two tiles of rows twice, of which one is used while the other arrives, and what is
// known of 64 queries twice.
template <class Form>
struct BackwardTensorShape : TensorShape<Form> {
  static constexpr int kPairElements = 2 * BackwardTensorShape::kTileElements;
  static constexpr std::size_t kTileBytes = 2 * kPairElements * 2;
  // Of heads wider than 64 elements registers do not hold the fragments of own rows: their tiles
  // stay in shared memory.
  static constexpr bool kKeepsFragments = Form::kPanels == 1;
  // Fragments of scores that a warp of keys holds at once, for the same reason, or for the words of
  // dropout.
  static constexpr int kColumnsAtOnce =
      Form::kPanels == 1 && !Form::kDrops ? kTileColumns : kTileColumns / 2;
  static constexpr std::size_t kOwnBytes = kKeepsFragments ? 0 : kPairElements * 2;
  static constexpr std::size_t kSharedBytes = kTileBytes + kOwnBytes + 2 * kTile * sizeof(QueryRow);
};

// Own 16 rows of two tiles as A: in registers, or read from shared memory when they are multiplied.
template <class Shape, typename T>
struct OwnRows {
  FragmentA first[Shape::kKeepsFragments ? Shape::kDepths : 1];
  FragmentA second[Shape::kKeepsFragments ? Shape::kDepths : 1];
  const T* tiles;

  // Of `rows` rows from these on, by way of shared memory `to`. Where fragments are kept it is free
  // for others then; else its rows are there with the next group that is waited for. All threads of
  // the block call.
  __device__ __forceinline__ void load(AsyncCopies& copies, const HeadRows<const T>& of_first,
                                       const HeadRows<const T>& of_second, int rows, int width,
                                       bool wide, T* to) {
    load_rows<Shape, kTile>(copies, of_first, rows, width, wide, to);
    load_rows<Shape, kTile>(copies, of_second, rows, width, wide, to + Shape::kTileElements);
    copies.close_group();
    tiles = to;
    if constexpr (Shape::kKeepsFragments) {
      copies.wait<0>();
      __syncthreads();
#pragma unroll
      for (int d = 0; d < Shape::kDepths; ++d) {
        first[d] = rows_as_a<Shape::kPitch>(to, own_warp() * kWarpRows, d * kDepth);
        second[d] =
            rows_as_a<Shape::kPitch>(to + Shape::kTileElements, own_warp() * kWarpRows, d * kDepth);
      }
      __syncthreads();  // they have been read
    }
  }
  // products += own rows of the first, or second, tile times the 8 kCount rows from `tile` on.
  template <bool kSecond, int kCount>
  __device__ __forceinline__ void multiply(const T* tile, FragmentC (&products)[kCount]) const {
#pragma unroll
    for (int d = 0; d < Shape::kDepths; ++d) {
      FragmentA a;
      if constexpr (Shape::kKeepsFragments) {
        a = kSecond ? second[d] : first[d];
      } else {
        a = rows_as_a<Shape::kPitch>(tiles + (kSecond ? Shape::kTileElements : 0),
                                     own_warp() * kWarpRows, d * kDepth);
      }
#pragma unroll
      for (int n = 0; n < kCount; n += 2) {
        const TwoFragmentsB b = rows_as_columns<Shape::kPitch>(tile, n * 8, d * kDepth);
        multiply_add<T>(products[n], a, b.fragments[0]);
        multiply_add<T>(products[n + 1], a, b.fragments[1]);
      }
    }
  }
};

// Heads of a tile in the four matrices that both kernels multiply.
template <typename T>
struct TensorHeads {
  HeadRows<const T> q;
  HeadRows<const T> dy;
  HeadRows<const T> k;
  HeadRows<const T> v;
};
template <typename T>
__device__ TensorHeads<T> heads_of(const GradientCall<T>& a, int batch, int head) {
  const AttentionSizes& sizes = a.sizes;
  const int shared_head = head / (sizes.heads / sizes.kv_heads);
  return {a.x.q.head(batch, head, sizes.width), a.dy.head(batch, head, sizes.width),
          a.x.k.head(batch, shared_head, sizes.width), a.x.v.head(batch, shared_head, sizes.width)};
}

// A block computes 64 keys of a head of k and v: dv = weights' dy and dk = gradients' q, summed
// over the queries that see them of all heads that share it, in order. FLOPs: 8 a score and element
// of a head, in whole tiles. Bytes: q, dy once for each tile of keys (from L2), k, v, dk and dv
// once.
template <class Form, typename T>
__global__ void __launch_bounds__(kTensorThreads, 2)
    attention_grad_keys_tensor(const GradientCall<T> a) {
  using Shape = BackwardTensorShape<Form>;
  TRAINSCOPE_SHARED_DYNAMIC(T, shared);
  T* const own_tiles = Shape::kKeepsFragments ? shared : shared + 2 * Shape::kPairElements;
  auto* const rows = reinterpret_cast<QueryRow*>(reinterpret_cast<unsigned char*>(shared) +
                                                 Shape::kTileBytes + Shape::kOwnBytes);
  const AttentionSizes& sizes = a.sizes;
  const int item = static_cast<int>(blockIdx.x) / a.tiles;
  const int shared_head = item % sizes.kv_heads;
  const int per_group = sizes.heads / sizes.kv_heads;
  TensorScores tile{.batch = item / sizes.kv_heads,
                    .head = shared_head * per_group,
                    .query = 0,
                    .key = static_cast<int>(blockIdx.x) % a.tiles * kTile,
                    .bias = nullptr};
  const int keys = sizes.keys - tile.key;
  const int own_row = own_warp() * kWarpRows;
  const int own_key = tile.key + own_row + lane_row();
  const std::uint64_t mask_key = Form::kDrops ? sizes.mask.key() : 0;

  AsyncCopies copies;
  const TensorHeads<T> first = heads_of(a, tile.batch, tile.head);
  OwnRows<Shape, T> own;
  own.load(copies, first.k.from(tile.key), first.v.from(tile.key), keys, sizes.width, a.wide,
           own_tiles);

  // The tiles of queries, head by head, by number.
  const int begin = sizes.causal ? tile.key / kTile : 0;
  const int of_head = tiles_of(sizes.tokens, kTile) - begin;
  const int count = of_head > 0 ? of_head * per_group : 0;
  const auto load = [&](int number) {
    const int head = shared_head * per_group + number / of_head;
    const int query = (begin + number % of_head) * kTile;
    T* const to = shared + number % 2 * Shape::kPairElements;
    const TensorHeads<T> from = heads_of(a, tile.batch, head);
    const int queries = sizes.tokens - query;
    load_rows<Shape, kTile>(copies, from.q.from(query), queries, sizes.width, a.wide, to);
    load_rows<Shape, kTile>(copies, from.dy.from(query), queries, sizes.width, a.wide,
                            to + Shape::kTileElements);
    if (threadIdx.x < kTile) {
      TensorScores of = tile;
      of.head = head;
      const int i = static_cast<int>(threadIdx.x);
      rows[number % 2 * kTile + i] = query_row(a, of, query + i);
    }
  };
  FragmentC dk[Shape::kColumns] = {};
  FragmentC dv[Shape::kColumns] = {};
  if (count > 0) load(0);
  copies.close_group();
  for (int number = 0; number < count; ++number) {
    if (number + 1 < count) load(number + 1);
    copies.close_group();
    copies.wait<1>();
    __syncthreads();
    tile.head = shared_head * per_group + number / of_head;
    tile.query = (begin + number % of_head) * kTile;
    tile.bias = bias_of_head(sizes, tile.batch, tile.head);
    const T* const of_queries = shared + number % 2 * Shape::kPairElements;
    const T* const of_dy = of_queries + Shape::kTileElements;
    const QueryRow* const own_rows = rows + number % 2 * kTile;
    const bool whole = tile.whole(sizes, kTile);
    unsigned kept = kAllKept;
    if constexpr (Form::kDrops) {
      kept = kept_in_tile<true>(sizes, mask_key, tile, tile.query, tile.key + own_row);
    }
    const bool plain = is_plain(sizes, tile, whole);
#pragma unroll 1
    for (int part = 0; part < kTileColumns; part += Shape::kColumnsAtOnce) {
      const T* const queries_of_part = of_queries + 8 * part * Shape::kPitch;
      const T* const dy_of_part = of_dy + 8 * part * Shape::kPitch;
      FragmentC weights[Shape::kColumnsAtOnce] = {};
      FragmentC gradients[Shape::kColumnsAtOnce] = {};
      own.template multiply<false>(queries_of_part, weights);
      own.template multiply<true>(dy_of_part, gradients);
      const auto finish = [&]<bool kPlain>(std::bool_constant<kPlain>) {
#pragma unroll
        for (int n = 0; n < Shape::kColumnsAtOnce; ++n) {
          const int query = (part + n) * 8 + lane_column();
          const QueryRow pair[2] = {own_rows[query], own_rows[query + 1]};
          finish_fragment<kPlain, Form::kDrops, true>(sizes, tile, tile.query + query, own_key,
                                                      whole, kept, part + n, pair, weights[n],
                                                      gradients[n]);
        }
      };
      if (plain) {
        finish(std::true_type{});
      } else {
        finish(std::false_type{});
      }
      add_weighted<Shape, T>(weights, dy_of_part, dv);
      add_weighted<Shape, T>(gradients, queries_of_part, dk);
    }
    __syncthreads();  // the tile has been read
  }
  const float ones[2] = {1.0F, 1.0F};
  const float scales[2] = {sizes.scale, sizes.scale};
  if (a.dx.k.data != nullptr) {
    store_fragments<Shape, T>(dk, scales,
                              a.dx.k.head(tile.batch, shared_head, sizes.width).from(tile.key),
                              own_row, keys, sizes.width, a.wide);
  }
  if (a.dx.v.data != nullptr) {
    store_fragments<Shape, T>(dv, ones,
                              a.dx.v.head(tile.batch, shared_head, sizes.width).from(tile.key),
                              own_row, keys, sizes.width, a.wide);
  }
}

// A block computes 64 queries of a head: dq = gradients k, summed over the keys that they see.
// Reads no row of q or dy but its own, which dq may take the place of. FLOPs: 6 a score and
// element.
template <class Form, typename T>
__global__ void __launch_bounds__(kTensorThreads, 2)
    attention_grad_queries_tensor(const GradientCall<T> a) {
  using Shape = BackwardTensorShape<Form>;
  TRAINSCOPE_SHARED_DYNAMIC(T, shared);
  T* const own_tiles = Shape::kKeepsFragments ? shared : shared + 2 * Shape::kPairElements;
  const AttentionSizes& sizes = a.sizes;
  const int item = static_cast<int>(blockIdx.x) / a.tiles;
  TensorScores tile{.batch = item / sizes.heads,
                    .head = item % sizes.heads,
                    .query = (a.tiles - 1 - static_cast<int>(blockIdx.x) % a.tiles) * kTile,
                    .key = 0,
                    .bias = nullptr};
  tile.bias = bias_of_head(sizes, tile.batch, tile.head);
  const int queries = sizes.tokens - tile.query;
  const int last = tile.query + kTile;
  const int keys = sizes.causal && last < sizes.keys ? last : sizes.keys;
  const int own_row = own_warp() * kWarpRows;
  const std::uint64_t mask_key = Form::kDrops ? sizes.mask.key() : 0;

  AsyncCopies copies;
  const TensorHeads<T> heads = heads_of(a, tile.batch, tile.head);
  OwnRows<Shape, T> own;
  own.load(copies, heads.q.from(tile.query), heads.dy.from(tile.query), queries, sizes.width,
           a.wide, own_tiles);
  const int own_query = tile.query + own_row + lane_row();
  const QueryRow rows[2] = {query_row(a, tile, own_query), query_row(a, tile, own_query + 8)};

  const auto load = [&](int key) {
    T* const to = shared + key / kTile % 2 * Shape::kPairElements;
    load_rows<Shape, kTile>(copies, heads.k.from(key), keys - key, sizes.width, a.wide, to);
    load_rows<Shape, kTile>(copies, heads.v.from(key), keys - key, sizes.width, a.wide,
                            to + Shape::kTileElements);
  };
  FragmentC dq[Shape::kColumns] = {};
  if (keys > 0) load(0);
  copies.close_group();
  for (; tile.key < keys; tile.key += kTile) {
    if (tile.key + kTile < keys) load(tile.key + kTile);
    copies.close_group();
    copies.wait<1>();
    __syncthreads();
    const T* const of_keys = shared + tile.key / kTile % 2 * Shape::kPairElements;
    const bool whole = tile.whole(sizes, kTile);
    unsigned kept = kAllKept;
    if constexpr (Form::kDrops) {
      kept = kept_in_tile<false>(sizes, mask_key, tile, tile.query + own_row, tile.key);
    }
    FragmentC weights[kTileColumns] = {};
    FragmentC gradients[kTileColumns] = {};
    own.template multiply<false>(of_keys, weights);
    own.template multiply<true>(of_keys + Shape::kTileElements, gradients);
    const auto finish = [&]<bool kPlain>(std::bool_constant<kPlain>) {
#pragma unroll
      for (int n = 0; n < kTileColumns; ++n) {
        finish_fragment<kPlain, Form::kDrops, false>(sizes, tile, own_query,
                                                     tile.key + n * 8 + lane_column(), whole, kept,
                                                     n, rows, weights[n], gradients[n]);
      }
    };
    if (is_plain(sizes, tile, whole)) {
      finish(std::true_type{});
    } else {
      finish(std::false_type{});
    }
    add_weighted<Shape, T>(gradients, of_keys, dq);
    __syncthreads();  // the tile has been read
  }
  const float scales[2] = {sizes.scale, sizes.scale};
  store_fragments<Shape, T>(dq, scales,
                            a.dx.q.head(tile.batch, tile.head, sizes.width).from(tile.query),
                            own_row, queries, sizes.width, a.wide);
}

template <typename T>
bool all_wide(const GradientCall<T>& call) {
  const std::int64_t width = call.sizes.width;
  return copies_wide(call.x.q, width) && copies_wide(call.x.k, width) &&
         copies_wide(call.x.v, width) && copies_wide(call.dy, width) &&
         copies_wide(call.dx.q, width) && copies_wide(call.dx.k, width) &&
         copies_wide(call.dx.v, width);
}

template <typename T>
void run_grad_tensor(const RunArgs& args) {
  GradientCall<T> call = gradient_call<T>(args);
  call.wide = all_wide(call);
  with_form<kMostTensorPanels>(call.sizes, [&]<class Form>(Form) {
    launch_gradients(
        args.call, call,
        {.threads = dim3(kTensorThreads), .shared_bytes = BackwardTensorShape<Form>::kSharedBytes},
        attention_grad_keys_tensor<Form, T>, attention_grad_queries_tensor<Form, T>);
  });
}

Support supports_grad_tensor(const PrepareArgs& args) {
  return supports_tensor_attention(args.params, args.inputs.subspan(kForwardInputs));
}

template <typename T>
void add_grad_tensor_for(KernelTable& table) {
  table.add("AttentionGrad", kDTypeOf<T>,
            {.name = "attention_grad.tensor",
             .supports = supports_grad_tensor,
             .prepare = prepare_gradient,
             .run = run_grad_tensor<T>});
}

}  // namespace

void add_attention_grad_tensor(KernelTable& table) {
  add_grad_tensor_for<BFloat16>(table);
  add_grad_tensor_for<Float16>(table);
}

}  // namespace trainscope::cuda
