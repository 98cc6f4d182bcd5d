// What the kernels of attention and of its gradient share: tiles of 64 queries and 64 keys, which a
// block of 256 threads computes by matmuls in f32 from shared memory.
//
// Thread (ty, tx) of 16 x 16 owns rows 4 ty .. 4 ty + 3 and columns 4 tx .. 4 tx + 3 of a tile.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/api/kernel.h"
#include "kernels/cuda/attention/dropout_mask.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {

inline constexpr int kTile = 64;          // rows and columns of a tile
inline constexpr int kTileThreads = 256;  // of a block
inline constexpr int kOwn = 4;            // rows, and columns, of a thread
inline constexpr int kDepth = 32;         // elements of heads that are multiplied in one go
inline constexpr int kPitch = kTile + 4;  // from one row of shared memory to the next
inline constexpr int kTileElements = kTile * kPitch;
inline constexpr std::int64_t kMostHeadWidth = 4 * kTile;  // sums of whole heads are in registers

__device__ inline int own_row() { return static_cast<int>(threadIdx.x) / 16 * kOwn; }
__device__ inline int own_column() { return static_cast<int>(threadIdx.x) % 16 * kOwn; }

// Rows of one head: token i at data + i * row.
template <typename T>
struct HeadRows {
  T* data;
  std::int64_t row;

  __device__ HeadRows from(std::int64_t i) const { return {data + i * row, row}; }
};

// Heads in a tensor [batch, tokens, heads, width], or in some of its heads.
template <typename T>
struct HeadTensor {
  T* data = nullptr;       // null: left out
  std::int64_t batch = 0;  // from one batch entry to the next
  std::int64_t row = 0;    // from one token to the next

  __device__ HeadRows<T> head(std::int64_t b, std::int64_t number, std::int64_t width) const {
    return {data + b * batch + number * width, row};
  }
};

template <typename T>
HeadTensor<T> head_tensor(const TensorView& view, std::int64_t first_head) {
  const Shape& shape = view.shape();
  const std::int64_t row = shape[2] * shape[3];
  return {.data = view.as<T>() + first_head * shape[3], .batch = shape[1] * row, .row = row};
}

// q, k and v, whether they are in tensors of their own or side by side.
template <typename T>
struct HeadTensors {
  HeadTensor<T> q;
  HeadTensor<T> k;
  HeadTensor<T> v;
};

template <typename T>
HeadTensors<T> head_tensors(const AttentionParams& params, std::span<const TensorView> tensors) {
  if (params.packed) {
    return {.q = head_tensor<T>(tensors[0], 0),
            .k = head_tensor<T>(tensors[0], params.heads),
            .v = head_tensor<T>(tensors[0], params.heads + params.kv_heads)};
  }
  const auto at = [&](std::size_t i) {
    return has_view(tensors, i) ? head_tensor<T>(tensors[i], 0) : HeadTensor<T>{};
  };
  return {.q = at(0), .k = at(1), .v = at(2)};
}

// Sizes of a call, and what is added to its scores and what its weights drop.
struct AttentionSizes {
  int batch = 0;
  int tokens = 0;
  int keys = 0;
  int heads = 0;
  int kv_heads = 0;
  int width = 0;  // of a head
  bool causal = false;
  float scale = 1.0F;
  const float* bias = nullptr;        // broadcast to [batch, heads, tokens, keys]
  std::int64_t bias_strides[4] = {};  // 0 where it is broadcast
  DropoutMask mask = {};

  // Number of a query among all [batch, heads, tokens].
  __host__ __device__ std::int64_t row(int b, int head, int query) const {
    return (static_cast<std::int64_t>(b) * heads + head) * tokens + query;
  }
  std::int64_t rows() const { return row(batch, 0, 0); }
};

// `inputs` begin with q.
AttentionSizes attention_sizes(const Params& params, std::span<const TensorView> inputs);
Support supports_attention(const Params& params, std::span<const TensorView> inputs);

inline int tiles_of(int rows) { return rows / kTile + (rows % kTile == 0 ? 0 : 1); }

// What a kernel is compiled for: heads of up to 64 * kPanels elements, with dropout or without.
template <int kPanelsOfForm, bool kDropsOfForm>
struct AttentionForm {
  static constexpr int kPanels = kPanelsOfForm;
  static constexpr bool kDrops = kDropsOfForm;
};

// Calls run(form) with the smallest form that takes the call.
template <class Run>
void with_form(const AttentionSizes& sizes, Run run) {
  const auto with_panels = [&]<int kPanels>(AttentionForm<kPanels, false> plain) {
    if (sizes.mask.threshold == 0) return run(plain);
    run(AttentionForm<kPanels, true>{});
  };
  if (sizes.width <= kTile) return with_panels(AttentionForm<1, false>{});
  if (sizes.width <= 2 * kTile) return with_panels(AttentionForm<2, false>{});
  with_panels(AttentionForm<4, false>{});
}

inline Grid tile_grid(int tiles, int heads, int batch) {
  return {.blocks = dim3(static_cast<unsigned>(tiles * heads * batch)),
          .threads = dim3(kTileThreads)};
}

// --- Matmuls of tiles ----------------------------------------------------------------------------

// Elements [first, first + 4) of a row, zeros from `width` on. One instruction where they are f32
// in whole registers of 16 bytes.
template <typename T>
__device__ inline float4 four_elements(const T* row, int first, int width) {
  if constexpr (std::is_same_v<T, float>) {
    const T* at = row + first;
    if (first + 4 <= width && reinterpret_cast<std::uintptr_t>(at) % sizeof(float4) == 0) {
      return *reinterpret_cast<const float4*>(at);
    }
  }
  const auto element = [&](int i) {
    return first + i < width ? static_cast<float>(row[first + i]) : 0.0F;
  };
  return make_float4(element(0), element(1), element(2), element(3));
}

// to[d][r] = element first + d of row r, zeros beyond the rows and the width. Threads next to each
// other have neighbouring rows: no two of a warp write to one bank.
template <typename T>
__device__ inline void load_by_element(const HeadRows<const T>& rows, int count, int first,
                                       int width, float* to) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kDepth / 4; e += kTileThreads) {
    const int r = e % kTile;
    const int d = e / kTile * 4;
    float4 four = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (r < count) four = four_elements(rows.data + r * rows.row, first + d, width);
    to[d * kPitch + r] = four.x;
    to[(d + 1) * kPitch + r] = four.y;
    to[(d + 2) * kPitch + r] = four.z;
    to[(d + 3) * kPitch + r] = four.w;
  }
}

// to[r][c] = element first + c of row r, zeros beyond the rows and the width.
template <typename T>
__device__ inline void load_by_row(const HeadRows<const T>& rows, int count, int first, int width,
                                   float* to) {
  constexpr int kFours = kTile / 4;
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kFours; e += kTileThreads) {
    const int c = e % kFours * 4;
    const int r = e / kFours;
    float4 four = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (r < count) four = four_elements(rows.data + r * rows.row, first + c, width);
    *reinterpret_cast<float4*>(to + r * kPitch + c) = four;
  }
}

// sums[i][j] += left[i] * right[j]
__device__ inline void add_outer(const float* left, const float* right, float (&sums)[kOwn][kOwn]) {
  const float4 a = *reinterpret_cast<const float4*>(left);
  const float4 b = *reinterpret_cast<const float4*>(right);
  const float from_left[kOwn] = {a.x, a.y, a.z, a.w};
  const float from_right[kOwn] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) sums[i][j] = std::fma(from_left[i], from_right[j], sums[i][j]);
  }
}

// Up to 64 rows of a head.
template <typename T>
struct TileRows {
  HeadRows<const T> rows;
  int count;
};

// sums[i][j] += the dot product of own row i of `left` and own column's row j of `right`. `shared`
// is for kTileElements.
template <typename T>
__device__ inline void multiply_rows(const TileRows<T>& left, const TileRows<T>& right, int width,
                                     float* shared, float (&sums)[kOwn][kOwn]) {
  float* const by_left = shared;
  float* const by_right = shared + kDepth * kPitch;
  for (int first = 0; first < width; first += kDepth) {
    __syncthreads();  // what `shared` held has been read
    load_by_element(left.rows, left.count, first, width, by_left);
    load_by_element(right.rows, right.count, first, width, by_right);
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      add_outer(by_left + d * kPitch + own_row(), by_right + d * kPitch + own_column(), sums);
    }
  }
}

// sums[p][i][j] += sum over k of weights[k][own row i] * element 64 p + own column j of row k.
// Begins with a barrier: `weights` may just have been written.
template <int kPanels, typename T>
__device__ inline void add_weighted_rows(const float* weights, const TileRows<T>& rows, int width,
                                         float* shared, float (&sums)[kPanels][kOwn][kOwn]) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    __syncthreads();
    load_by_row(rows.rows, rows.count, panel * kTile, width, shared);
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      add_outer(weights + k * kPitch + own_row(), shared + k * kPitch + own_column(), sums[panel]);
    }
  }
}

// Own rows of a result [count, width] times factor[i].
template <int kPanels, typename T>
__device__ inline void store_rows(const float (&sums)[kPanels][kOwn][kOwn],
                                  const float (&factor)[kOwn], const HeadRows<T>& to, int count,
                                  int width) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        const int r = own_row() + i;
        const int c = panel * kTile + own_column() + j;
        if (r < count && c < width) {
          to.data[r * to.row + c] = static_cast<T>(sums[panel][i][j] * factor[i]);
        }
      }
    }
  }
}

// weights[row][column] of own elements, or weights[column][row].
__device__ inline void keep_by_row(const float (&own)[kOwn][kOwn], float* weights) {
  for (int i = 0; i < kOwn; ++i) {
    *reinterpret_cast<float4*>(weights + (own_row() + i) * kPitch + own_column()) =
        make_float4(own[i][0], own[i][1], own[i][2], own[i][3]);
  }
}
__device__ inline void keep_by_column(const float (&own)[kOwn][kOwn], float* weights) {
  for (int j = 0; j < kOwn; ++j) {
    *reinterpret_cast<float4*>(weights + (own_column() + j) * kPitch + own_row()) =
        make_float4(own[0][j], own[1][j], own[2][j], own[3][j]);
  }
}

// --- Scores --------------------------------------------------------------------------------------

// Where a tile of scores lies: query and key of its first element.
struct ScoreTile {
  int batch;
  int head;
  int query;
  int key;
};

// Whether a query sees a key.
__device__ inline bool sees(const AttentionSizes& sizes, int query, int key) {
  return query < sizes.tokens && key < sizes.keys && (!sizes.causal || key <= query);
}

// Dot products become scores: scaled, with the bias, -inf of keys that are not seen.
__device__ inline void finish_scores(const AttentionSizes& sizes, const ScoreTile& tile,
                                     float (&scores)[kOwn][kOwn]) {
  const float* bias = nullptr;  // of own row 0 and column 0
  if (sizes.bias != nullptr) {
    bias = sizes.bias + tile.batch * sizes.bias_strides[0] + tile.head * sizes.bias_strides[1] +
           (tile.query + own_row()) * sizes.bias_strides[2] +
           (tile.key + own_column()) * sizes.bias_strides[3];
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const bool seen = sees(sizes, tile.query + own_row() + i, tile.key + own_column() + j);
      float score = scores[i][j] * sizes.scale;
      if (bias != nullptr && seen) {
        score += bias[i * sizes.bias_strides[2] + j * sizes.bias_strides[3]];
      }
      scores[i][j] = seen ? score : -INFINITY;
    }
  }
}

// The random words of own row i's four columns.
__device__ inline FourWords words_of_row(const AttentionSizes& sizes, std::uint64_t key,
                                         const ScoreTile& tile, int i) {
  const std::int64_t row = sizes.row(tile.batch, tile.head, tile.query + own_row() + i);
  const std::int64_t first = row * sizes.keys + tile.key + own_column();
  return four_words(key, sizes.mask.stream, static_cast<std::uint64_t>(first));
}

}  // namespace trainscope::cuda
