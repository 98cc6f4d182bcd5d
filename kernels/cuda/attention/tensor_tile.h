// Tiles of attention on tensor cores, for elements of two bytes: rows of heads in shared memory,
// their fragments, and what becomes of a fragment of scores. Sums are in f32.
//
// A warp computes fragments [16, 8]; with g = lane / 4 and t = lane % 4 element i of a thread's
// four is in row g + 8 (i / 2) and column 2 t + i % 2.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_call.h"
#include "kernels/cuda/support/tensor_core.h"

namespace trainscope::cuda {

inline constexpr int kTensorThreads = 128;   // of a block: four warps
inline constexpr int kMostTensorPanels = 2;  // heads of up to 128 elements
inline constexpr int kDepth = 16;            // what an MMA sums over

// Heads of up to 64 kPanels elements. Rows in shared memory are 16 bytes longer than that: eight of
// them lie in different banks.
template <class Form>
struct TensorShape {
  static constexpr int kWidth = Form::kPanels * kTile;
  static constexpr int kPitch = kWidth + 8;
  static constexpr int kTileElements = kTile * kPitch;
  static constexpr int kDepths = kWidth / kDepth;  // of a head
  static constexpr int kColumns = kWidth / 8;      // fragments across a head
};

inline constexpr int kTileDepths = kTile / kDepth;  // MMAs along 64 queries or keys
inline constexpr int kTileColumns = kTile / 8;      // fragments across them

__device__ inline int lane_row() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ inline int lane_column() { return static_cast<int>(threadIdx.x) % 4 * 2; }
__device__ inline int own_warp() { return static_cast<int>(threadIdx.x) / kWarp; }

// Whether rows of a tensor may be copied by 16 bytes.
template <typename T>
bool copies_wide(const HeadTensor<T>& tensor, std::int64_t width) {
  constexpr std::int64_t kElements = 16 / static_cast<std::int64_t>(sizeof(T));
  return tensor.data == nullptr ||
         (reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0 && width % kElements == 0 &&
          tensor.row % kElements == 0 && tensor.batch % kElements == 0);
}

// to[r][c] = element c of row r of kRows, zeros beyond `rows` and the width. It is there after a
// wait for `copies` and a barrier.
template <class Shape, int kRows, typename T>
__device__ __forceinline__ void load_rows(AsyncCopies& copies, const HeadRows<const T>& from,
                                          int rows, int width, bool wide, T* to) {
  constexpr int kEights = Shape::kWidth / 8;
  for (int e = static_cast<int>(threadIdx.x); e < kRows * kEights; e += kTensorThreads) {
    const int r = e / kEights;
    const int c = e % kEights * 8;
    T* const at = to + r * Shape::kPitch + c;
    const bool inside = r < rows && c < width;
    if (wide) {
      copies.copy(at, from.data + (inside ? r * from.row + c : 0), inside);
      continue;
    }
    for (int k = 0; k < 8; ++k) {
      at[k] = inside && c + k < width ? from.data[r * from.row + c + k] : T{};
    }
  }
}

// Rows [row, row + 16) and elements [depth, depth + 16) as A.
template <int kPitch, typename T>
__device__ __forceinline__ FragmentA rows_as_a(const T* tile, int row, int depth) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  FragmentA a;
  load_matrices<false>(a.pairs, tile + (row + lane % 16) * kPitch + depth + lane / 16 * 8);
  return a;
}

// B of which rows of the tile are columns: rows [row, row + 16), elements [depth, depth + 16).
struct TwoFragmentsB {
  FragmentB fragments[2];  // of columns [0, 8) and [8, 16)
};
template <int kPitch, typename T>
__device__ __forceinline__ TwoFragmentsB rows_as_columns(const T* tile, int row, int depth) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  Pair pairs[4];
  load_matrices<false>(pairs,
                       tile + (row + lane % 8 + lane / 16 * 8) * kPitch + depth + lane / 8 % 2 * 8);
  return {{{{pairs[0], pairs[1]}}, {{pairs[2], pairs[3]}}}};
}
// ... of which they are rows: rows [row, row + 16), elements [column, column + 16).
template <int kPitch, typename T>
__device__ __forceinline__ TwoFragmentsB rows_as_rows(const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  Pair pairs[4];
  load_matrices<true>(pairs, tile + (row + lane % 16) * kPitch + column + lane / 16 * 8);
  return {{{{pairs[0], pairs[1]}}, {{pairs[2], pairs[3]}}}};
}

// Two neighbouring fragments of weights, rounded to T, as A.
template <typename T>
__device__ __forceinline__ FragmentA weights_as_a(const FragmentC& left, const FragmentC& right) {
  return {{pair_of<T>(left.values[0], left.values[1]), pair_of<T>(left.values[2], left.values[3]),
           pair_of<T>(right.values[0], right.values[1]),
           pair_of<T>(right.values[2], right.values[3])}};
}

// sums[c] += weights times the 8 kCount rows from `tile` on.
template <class Shape, typename T, int kCount>
__device__ __forceinline__ void add_weighted(const FragmentC (&weights)[kCount], const T* tile,
                                             FragmentC (&sums)[Shape::kColumns]) {
#pragma unroll
  for (int d = 0; d < kCount / 2; ++d) {
    const FragmentA a = weights_as_a<T>(weights[2 * d], weights[2 * d + 1]);
#pragma unroll
    for (int c = 0; c < Shape::kColumns; c += 2) {
      const TwoFragmentsB b = rows_as_rows<Shape::kPitch>(tile, d * kDepth, c * 8);
      multiply_add<T>(sums[c], a, b.fragments[0]);
      multiply_add<T>(sums[c + 1], a, b.fragments[1]);
    }
  }
}

// Rows [row, row + 16) of a result whose first row is `to`, of which there are `rows`; own two rows
// times their factors.
template <class Shape, typename T>
__device__ __forceinline__ void store_fragments(const FragmentC (&sums)[Shape::kColumns],
                                                const float (&factor)[2], const HeadRows<T>& to,
                                                int row, int rows, int width, bool wide) {
#pragma unroll
  for (int c = 0; c < Shape::kColumns; ++c) {
    const int column = c * 8 + lane_column();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + lane_row() + 8 * half;
      if (r >= rows || column >= width) continue;
      const float first = sums[c].values[2 * half] * factor[half];
      const float second = sums[c].values[2 * half + 1] * factor[half];
      T* const at = to.data + r * to.row + column;
      if (wide) {
        *reinterpret_cast<Pair*>(at) = pair_of<T>(first, second);
      } else {
        at[0] = static_cast<T>(first);
        if (column + 1 < width) at[1] = static_cast<T>(second);
      }
    }
  }
}

// --- Scores --------------------------------------------------------------------------------------

// A tile of scores: its head, its first query and key, and whether each query in it sees each key.
struct TensorScores {
  int batch;
  int head;
  int query;
  int key;
  const float* bias;  // of query 0 and key 0, or null

  __device__ bool whole(const AttentionSizes& sizes, int queries) const {
    return query + queries <= sizes.tokens && key + kTile <= sizes.keys &&
           (!sizes.causal || key + kTile <= query + 1);
  }
};
__device__ inline const float* bias_of_head(const AttentionSizes& sizes, int batch, int head) {
  if (sizes.bias == nullptr) return nullptr;
  return sizes.bias + batch * sizes.bias_strides[0] + head * sizes.bias_strides[1];
}

inline constexpr float kLog2OfE = 1.44269504F;

// e^(score - largest).
__device__ __forceinline__ float shifted_exp(float score, float largest) {
  return exp2_approximate((score - largest) * kLog2OfE);
}
// The same of plain scores, dot * scale, in one operation less; scale_log2 and largest_log2 are
// kLog2OfE times these. Of large scores, as those that a bias masks, no digit would be left.
__device__ __forceinline__ float shifted_exp_of_dot(float dot, float scale_log2,
                                                    float largest_log2) {
  return exp2_approximate(std::fma(dot, scale_log2, -largest_log2));
}

// Whether scores are dot products times the scale, which is positive, and nothing else.
__device__ __forceinline__ bool is_plain(const AttentionSizes& sizes, const TensorScores& tile,
                                         bool whole) {
  return whole && tile.bias == nullptr && sizes.scale > 0.0F;
}

__device__ __forceinline__ bool is_seen(const AttentionSizes& sizes, bool whole, int query,
                                        int key) {
  return whole || (query < sizes.tokens && key < sizes.keys && (!sizes.causal || key <= query));
}
// The score of a query that sees the key.
__device__ __forceinline__ float score_of(const AttentionSizes& sizes, const TensorScores& tile,
                                          int query, int key, float dot) {
  const float score = dot * sizes.scale;
  if (tile.bias == nullptr) return score;
  return score + tile.bias[query * sizes.bias_strides[2] + key * sizes.bias_strides[3]];
}

// Which of a thread's four elements dropout keeps, a bit each, of a fragment [query, key] that
// begins at these. Two lanes draw four neighbouring words of a row each, and give each other two.
__device__ inline unsigned kept_by_query(const AttentionSizes& sizes, std::uint64_t mask_key,
                                         const TensorScores& tile, int query, int key) {
  const bool odd = threadIdx.x % 2 != 0;
  const std::int64_t row = sizes.row(tile.batch, tile.head, query + lane_row() + (odd ? 8 : 0));
  const FourWords words =
      four_words(mask_key, sizes.mask.stream,
                 static_cast<std::uint64_t>(row * sizes.keys + key + lane_column() / 4 * 4));
  const std::uint32_t* w = words.word;
  const std::uint32_t first = __shfl_xor_sync(kWholeWarp, odd ? w[0] : w[2], 1);
  const std::uint32_t second = __shfl_xor_sync(kWholeWarp, odd ? w[1] : w[3], 1);
  const auto bit = [&sizes](std::uint32_t word, unsigned i) {
    return sizes.mask.keeps(word) ? 1U << i : 0U;
  };
  return odd ? bit(first, 0) | bit(second, 1) | bit(w[2], 2) | bit(w[3], 3)
             : bit(w[0], 0) | bit(w[1], 1) | bit(first, 2) | bit(second, 3);
}

// ... of a fragment [key, query]. Of four lanes that have neighbouring keys, each draws the words
// of these keys for one of a thread's four elements, and gives each of the others its word.
__device__ inline unsigned kept_by_key(const AttentionSizes& sizes, std::uint64_t mask_key,
                                       const TensorScores& tile, int query, int key) {
  const int own = lane_row() % 4;
  const std::int64_t row = sizes.row(tile.batch, tile.head, query + lane_column() + own % 2);
  const int first_key = key + lane_row() / 4 * 4 + own / 2 * 8;
  const FourWords words = four_words(mask_key, sizes.mask.stream,
                                     static_cast<std::uint64_t>(row * sizes.keys + first_key));
  unsigned kept = 0;
#pragma unroll
  for (int apart = 0; apart < 4; ++apart) {
    const int other = own ^ apart;
    const std::uint32_t low = other % 2 == 0 ? words.word[0] : words.word[1];
    const std::uint32_t high = other % 2 == 0 ? words.word[2] : words.word[3];
    const std::uint32_t word = __shfl_xor_sync(kWholeWarp, other < 2 ? low : high, 4 * apart);
    if (sizes.mask.keeps(word)) kept |= 1U << static_cast<unsigned>(other);
  }
  return kept;
}

// ... of the fragments [16, 8] of a tile [16 queries, 64 keys] or [16 keys, 64 queries] that begins
// at these: four bits each. It is drawn before registers hold scores.
constexpr unsigned kAllKept = ~0U;
template <bool kByKey>
__device__ __forceinline__ unsigned kept_in_tile(const AttentionSizes& sizes,
                                                 std::uint64_t mask_key, const TensorScores& tile,
                                                 int query, int key) {
  unsigned kept = 0;
  for (int n = 0; n < kTileColumns; ++n) {
    const unsigned bits = kByKey ? kept_by_key(sizes, mask_key, tile, query + n * 8, key)
                                 : kept_by_query(sizes, mask_key, tile, query, key + n * 8);
    kept |= bits << static_cast<unsigned>(4 * n);
  }
  return kept;
}
__device__ __forceinline__ bool is_kept(unsigned kept, int n, int i) {
  return (kept >> static_cast<unsigned>(4 * n + i) & 1U) != 0;
}

}  // namespace trainscope::cuda
