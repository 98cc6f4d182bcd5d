// Convolutions as matmuls whose right matrix is never there: tiles of it are gathered from planes
// into shared memory (implicit GEMM).
//
// A form says what the matrices are: result [rows, columns] = left [rows, depth] right [depth,
// columns], once for each group and once for each share of the depth. Rows are channels; what
// columns and depths are, the form tells as places.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/conv/window.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {

inline constexpr int kConvColumns = 128;  // of a block's tile; its rows are 64 or 128
inline constexpr int kConvDepth = 16;     // what is summed over in one go
inline constexpr int kConvThreads = 256;  // 16 x 16
inline constexpr int kConvOwn = 4;        // rows or columns of a thread that lie side by side

// A column or a depth as offsets into two of the three tensors and a position in a plane.
struct ConvPlace {
  std::int64_t first;
  std::int64_t second;
  int axis[kMaxSpatialRank];
  bool inside;  // false: behind the last one
};

// How a launch is divided: blocks [shares, groups, column tiles, row tiles], the last the fastest.
struct ConvTiling {
  std::int64_t rows = 0;  // of a group
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t groups = 1;
  std::int64_t shares = 1;  // of the depth, each in a result of its own

  __host__ __device__ int row_tile() const { return rows <= 64 ? 64 : 128; }
  __host__ __device__ std::int64_t row_tiles() const {
    return (rows + row_tile() - 1) / row_tile();
  }
  __host__ __device__ std::int64_t column_tiles() const {
    return (columns + kConvColumns - 1) / kConvColumns;
  }
  std::int64_t blocks() const { return shares * groups * column_tiles() * row_tiles(); }
  // Depths of a share, in whole steps.
  __host__ __device__ std::int64_t share_depth() const {
    const std::int64_t steps = (depth + kConvDepth - 1) / kConvDepth;
    return (steps + shares - 1) / shares * kConvDepth;
  }
};

// Where a block's tile lies.
struct ConvTileAt {
  std::int64_t share;
  std::int64_t group;
  std::int64_t row;
  std::int64_t column;
  std::int64_t begin;  // of the depth
  std::int64_t end;
};

__device__ inline ConvTileAt conv_tile_at(const ConvTiling& tiling) {
  std::int64_t block = blockIdx.x;
  ConvTileAt at;
  at.row = block % tiling.row_tiles() * tiling.row_tile();
  block /= tiling.row_tiles();
  at.column = block % tiling.column_tiles() * kConvColumns;
  block /= tiling.column_tiles();
  at.group = block % tiling.groups;
  at.share = block / tiling.groups;
  at.begin = at.share * tiling.share_depth();
  const std::int64_t end = at.begin + tiling.share_depth();
  at.end = end < tiling.depth ? end : tiling.depth;
  return at;
}

// to[d][i] of the step's 16 depths and kCount rows or columns; the depth is the faster one where
// that is how they lie in memory.
template <int kCount, bool kByDepth, class Element>
__device__ void load_conv_tile(float* to, Element element) {
#pragma unroll 2  // with four, two blocks' registers do not fit into a multiprocessor
  for (int e = static_cast<int>(threadIdx.x); e < kCount * kConvDepth; e += kConvThreads) {
    const int i = kByDepth ? e / kConvDepth : e % kCount;
    const int d = kByDepth ? e % kConvDepth : e / kCount;
    to[d * (kCount + 4) + i] = element(d, i);
  }
}

// A thread's k-th row or column of a tile: groups of four, 64 apart.
__device__ inline int conv_own(int number, int k) {
  return k / kConvOwn * 64 + number * kConvOwn + k % kConvOwn;
}

// own[k] = row[conv_own(number, k)]
template <int kCount>
__device__ inline void read_conv_own(const float* row, int number, float (&own)[kCount / 16]) {
#pragma unroll
  for (int group = 0; group < kCount / 64; ++group) {
    const float4 four = *reinterpret_cast<const float4*>(row + group * 64 + number * kConvOwn);
    own[group * kConvOwn] = four.x;
    own[group * kConvOwn + 1] = four.y;
    own[group * kConvOwn + 2] = four.z;
    own[group * kConvOwn + 3] = four.w;
  }
}

template <int kRows>
__device__ inline void multiply_conv_tiles(const float* left, const float* right,
                                           float (&sums)[kRows / 16][kConvColumns / 16]) {
#pragma unroll
  for (int d = 0; d < kConvDepth; ++d) {
    float a[kRows / 16];
    float b[kConvColumns / 16];
    read_conv_own<kRows>(left + d * (kRows + 4), static_cast<int>(threadIdx.x) / 16, a);
    read_conv_own<kConvColumns>(right + d * (kConvColumns + 4), static_cast<int>(threadIdx.x) % 16,
                                b);
#pragma unroll
    for (int i = 0; i < kRows / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kConvColumns / 16; ++j) sums[i][j] = std::fma(a[i], b[j], sums[i][j]);
    }
  }
}

// FLOPs: 2 rows columns depth in whole tiles. Bytes: left once for each 128 columns, right once for
// each tile of rows (mostly from L2), the result written once. 13 to 17 KiB of shared memory for
// the tiles, 5 for places. Sums are formed in the order of the depth, in f32.
template <int kRows, class Form>
__global__ void __launch_bounds__(kConvThreads, 2)
    conv_tiles(const Form form, const ConvTiling tiling) {
  TRAINSCOPE_SHARED(float, left, kConvDepth*(kRows + 4));
  TRAINSCOPE_SHARED(float, right, kConvDepth*(kConvColumns + 4));
  TRAINSCOPE_SHARED(ConvPlace, columns, kConvColumns);
  TRAINSCOPE_SHARED(ConvPlace, depths, kConvDepth);
  const ConvTileAt at = conv_tile_at(tiling);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kConvColumns) {
    const std::int64_t column = at.column + thread;
    columns[thread] = form.column_place(at.group, column < tiling.columns ? column : 0);
    columns[thread].inside = column < tiling.columns;
  }
  __syncthreads();
  // A thread gathers elements of one column, or of one depth: its place stays in registers.
  const ConvPlace own_column = columns[thread % kConvColumns];
  float sums[kRows / 16][kConvColumns / 16] = {};
  for (std::int64_t depth = at.begin; depth < at.end; depth += kConvDepth) {
    __syncthreads();  // tiles and places have been read
    if (thread < kConvDepth) {
      const std::int64_t own = depth + thread;
      depths[thread] = form.depth_place(at.group, own < at.end ? own : at.begin);
      depths[thread].inside = own < at.end;
    }
    __syncthreads();
    const ConvPlace own_depth = depths[thread % kConvDepth];
    load_conv_tile<kRows, true>(left, [&](int d, int i) {
      const bool inside = own_depth.inside && at.row + i < tiling.rows;
      return inside ? form.left(at.group, at.row + i, depth + d, own_depth) : 0.0F;
    });
    load_conv_tile<kConvColumns, Form::kRightByDepth>(right, [&](int d, int i) {
      const ConvPlace& at_depth = Form::kRightByDepth ? own_depth : depths[d];
      const ConvPlace& at_column = Form::kRightByDepth ? columns[i] : own_column;
      const bool inside = at_depth.inside && at_column.inside;
      return inside ? form.right(at_depth, at_column) : 0.0F;
    });
    __syncthreads();
    multiply_conv_tiles<kRows>(left, right, sums);
  }
#pragma unroll
  for (int i = 0; i < kRows / 16; ++i) {
#pragma unroll
    for (int j = 0; j < kConvColumns / 16; ++j) {
      const std::int64_t row = at.row + conv_own(thread / 16, i);
      const int column = conv_own(thread % 16, j);
      if (row >= tiling.rows || !columns[column].inside) continue;
      form.store(at, row, at.column + column, columns[column], sums[i][j]);
    }
  }
}

// Shares of the depth: enough blocks for a GPU, but none of fewer than 256 depths.
inline std::int64_t conv_shares(const ConvTiling& whole, std::int64_t wanted_blocks) {
  constexpr std::int64_t kLeastDepth = 256;
  const std::int64_t most = std::max<std::int64_t>(1, whole.depth / kLeastDepth);
  return std::clamp<std::int64_t>(wanted_blocks / std::max<std::int64_t>(1, whole.blocks()), 1,
                                  most);
}

template <class Form>
void launch_conv(const CallContext& call, const Form& form, const ConvTiling& tiling) {
  const Grid grid{.blocks = team_blocks(tiling.blocks(), 1), .threads = dim3(kConvThreads)};
  if (tiling.row_tile() == 64) return launch(call, grid, conv_tiles<64, Form>, form, tiling);
  launch(call, grid, conv_tiles<128, Form>, form, tiling);
}

}  // namespace trainscope::cuda
