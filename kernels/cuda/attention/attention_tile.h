// Matmuls of tiles in f32 from shared memory, for attention and its gradient.
//
// A tile has kRows rows and 64 columns. Of 16 x kAcross threads, thread (ty, tx) owns rows in
// groups of four that are 64 apart, the first at 4 ty, and columns in groups of four that are 4
// kAcross apart, the first at 4 tx.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/attention/attention_call.h"

namespace trainscope::cuda {

template <int kRowsOfTile, int kAcrossOfTile>
struct TileShape {
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kAcross = kAcrossOfTile;
  static constexpr int kThreads = 16 * kAcross;
  static constexpr int kOwnRows = kRows / 16;
  static constexpr int kOwnColumns = kTile / kAcross;
  static constexpr int kDepth = 32;            // elements that are multiplied in one go
  static constexpr int kRowPitch = kRows + 4;  // from one row of shared memory to the next
  static constexpr int kPitch = kTile + 4;
  // Floats of shared memory: two operands of a step or a panel of rows, and weights.
  static constexpr int kOfProducts = kDepth * (kRowPitch + kPitch);
  static constexpr int kOfPanel = kTile * kPitch;
  static constexpr int kOperands = kOfProducts > kOfPanel ? kOfProducts : kOfPanel;
  static constexpr int kWeights = kTile * kRowPitch;
  static constexpr std::size_t kSharedBytes = (kOperands + kWeights) * sizeof(float);

  __device__ static int down() { return static_cast<int>(threadIdx.x) / kAcross; }
  __device__ static int across() { return static_cast<int>(threadIdx.x) % kAcross; }
  __device__ static int row(int i) { return i / 4 * 64 + down() * 4 + i % 4; }
  __device__ static int column(int j) { return j / 4 * (4 * kAcross) + across() * 4 + j % 4; }
};

template <class Tile>
using OwnTile = float[Tile::kOwnRows][Tile::kOwnColumns];

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

// to[d][r] = element first + d of row r of kCount, zeros beyond `rows` and the width. Threads next
// to each other have neighbouring rows: no two of a warp write to one bank.
template <class Tile, int kCount, typename T>
__device__ inline void load_by_element(const HeadRows<const T>& from, int rows, int first,
                                       int width, float* to) {
  constexpr int kPitch = kCount + 4;
  for (int e = static_cast<int>(threadIdx.x); e < kCount * Tile::kDepth / 4; e += Tile::kThreads) {
    const int r = e % kCount;
    const int d = e / kCount * 4;
    float4 four = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (r < rows) four = four_elements(from.data + r * from.row, first + d, width);
    to[d * kPitch + r] = four.x;
    to[(d + 1) * kPitch + r] = four.y;
    to[(d + 2) * kPitch + r] = four.z;
    to[(d + 3) * kPitch + r] = four.w;
  }
}

// to[r][c] = element first + c of row r of 64, zeros beyond `rows` and the width.
template <class Tile, typename T>
__device__ inline void load_by_row(const HeadRows<const T>& from, int rows, int first, int width,
                                   float* to) {
  constexpr int kFours = kTile / 4;
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kFours; e += Tile::kThreads) {
    const int c = e % kFours * 4;
    const int r = e / kFours;
    float4 four = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (r < rows) four = four_elements(from.data + r * from.row, first + c, width);
    *reinterpret_cast<float4*>(to + r * Tile::kPitch + c) = four;
  }
}

// own[k] = from[first + k], in groups of four that are `apart` from each other.
template <int kCount>
__device__ inline void read_fours(const float* from, int apart, float (&own)[kCount]) {
#pragma unroll
  for (int group = 0; group < kCount / 4; ++group) {
    const float4 four = *reinterpret_cast<const float4*>(from + group * apart);
    own[group * 4] = four.x;
    own[group * 4 + 1] = four.y;
    own[group * 4 + 2] = four.z;
    own[group * 4 + 3] = four.w;
  }
}

// sums[i][j] += left[own row i] * right[own column j]
template <class Tile>
__device__ inline void add_outer(const float* left, const float* right, OwnTile<Tile>& sums) {
  float a[Tile::kOwnRows];
  float b[Tile::kOwnColumns];
  read_fours(left + Tile::down() * 4, 64, a);
  read_fours(right + Tile::across() * 4, 4 * Tile::kAcross, b);
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; ++j) sums[i][j] = std::fma(a[i], b[j], sums[i][j]);
  }
}

// The first rows of a head that a tile has, and how many there are from there on.
template <typename T>
struct TileRows {
  HeadRows<const T> rows;
  int count;
};

// sums[i][j] += the dot product of own row i of `left` and own column's row j of `right`. `shared`
// is for Tile::kOperands.
template <class Tile, typename T>
__device__ inline void multiply_rows(const TileRows<T>& left, const TileRows<T>& right, int width,
                                     float* shared, OwnTile<Tile>& sums) {
  float* const by_left = shared;
  float* const by_right = shared + Tile::kDepth * Tile::kRowPitch;
  for (int first = 0; first < width; first += Tile::kDepth) {
    __syncthreads();  // what `shared` held has been read
    load_by_element<Tile, Tile::kRows>(left.rows, left.count, first, width, by_left);
    load_by_element<Tile, kTile>(right.rows, right.count, first, width, by_right);
    __syncthreads();
#pragma unroll 4
    for (int d = 0; d < Tile::kDepth; ++d) {
      add_outer<Tile>(by_left + d * Tile::kRowPitch, by_right + d * Tile::kPitch, sums);
    }
  }
}

// sums[p][i][j] += sum over k < 64 of weights[k][own row i] * element 64 p + own column j of row k.
// Begins with a barrier: `weights` may just have been written.
template <class Tile, int kPanels, typename T>
__device__ inline void add_weighted_rows(const float* weights, const TileRows<T>& rows, int width,
                                         float* shared, OwnTile<Tile> (&sums)[kPanels]) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    __syncthreads();
    load_by_row<Tile>(rows.rows, rows.count, panel * kTile, width, shared);
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kTile; ++k) {
      add_outer<Tile>(weights + k * Tile::kRowPitch, shared + k * Tile::kPitch, sums[panel]);
    }
  }
}

// Own rows of a result [count, width] times factor[i].
template <class Tile, int kPanels, typename T>
__device__ inline void store_rows(const OwnTile<Tile> (&sums)[kPanels],
                                  const float (&factor)[Tile::kOwnRows], const HeadRows<T>& to,
                                  int count, int width) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
#pragma unroll
    for (int i = 0; i < Tile::kOwnRows; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kOwnColumns; ++j) {
        const int r = Tile::row(i);
        const int c = panel * kTile + Tile::column(j);
        if (r < count && c < width) {
          to.data[r * to.row + c] = static_cast<T>(sums[panel][i][j] * factor[i]);
        }
      }
    }
  }
}

// weights[row][column] = own elements, of tiles with as many rows as columns.
template <class Tile>
__device__ inline void keep_by_row(const OwnTile<Tile>& own, float* weights) {
  static_assert(Tile::kRows == kTile);
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; j += 4) {
      *reinterpret_cast<float4*>(weights + Tile::row(i) * Tile::kPitch + Tile::column(j)) =
          make_float4(own[i][j], own[i][j + 1], own[i][j + 2], own[i][j + 3]);
    }
  }
}
// weights[column][row] = own elements.
template <class Tile>
__device__ inline void keep_by_column(const OwnTile<Tile>& own, float* weights) {
#pragma unroll
  for (int j = 0; j < Tile::kOwnColumns; ++j) {
#pragma unroll
    for (int i = 0; i < Tile::kOwnRows; i += 4) {
      *reinterpret_cast<float4*>(weights + Tile::column(j) * Tile::kRowPitch + Tile::row(i)) =
          make_float4(own[i][j], own[i + 1][j], own[i + 2][j], own[i + 3][j]);
    }
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
template <class Tile>
__device__ inline void finish_scores(const AttentionSizes& sizes, const ScoreTile& tile,
                                     OwnTile<Tile>& scores) {
  const auto bias_step = static_cast<int>(sizes.bias_strides[3]);  // 0 or 1
#pragma unroll
  for (int i = 0; i < Tile::kOwnRows; ++i) {
    const int query = tile.query + Tile::row(i);
    const float* bias = nullptr;  // of the query and the tile's first key
    if (sizes.bias != nullptr) {
      bias = sizes.bias + tile.batch * sizes.bias_strides[0] + tile.head * sizes.bias_strides[1] +
             query * sizes.bias_strides[2] + tile.key * sizes.bias_strides[3];
    }
#pragma unroll
    for (int j = 0; j < Tile::kOwnColumns; ++j) {
      const bool seen = sees(sizes, query, tile.key + Tile::column(j));
      float score = scores[i][j] * sizes.scale;
      if (bias != nullptr && seen) score += bias[Tile::column(j) * bias_step];
      scores[i][j] = seen ? score : -INFINITY;
    }
  }
}

// The random words of own row i's columns j to j + 3.
template <class Tile>
__device__ inline FourWords words_of(const AttentionSizes& sizes, std::uint64_t key,
                                     const ScoreTile& tile, int i, int j) {
  const std::int64_t row = sizes.row(tile.batch, tile.head, tile.query + Tile::row(i));
  const std::int64_t first = row * sizes.keys + tile.key + Tile::column(j);
  return four_words(key, sizes.mask.stream, static_cast<std::uint64_t>(first));
}

}  // namespace trainscope::cuda
