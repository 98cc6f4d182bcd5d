// Convolutions as matmuls whose right matrix is never there: tiles of it are gathered from planes
// into shared memory (implicit GEMM).
//
// A form says what the matrices are: result [rows, columns] = left [rows, depth] right [depth,
// columns], once for each group and once for each share of the depth. Rows are channels; what
// columns and depths are, the form tells as places.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/conv/window.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {

inline constexpr int kConvTile = 64;   // rows and columns that a block computes, 4 x 4 a thread
inline constexpr int kConvDepth = 16;  // what is summed over in one go
inline constexpr int kConvPitch = kConvTile + 4;
inline constexpr int kConvThreads = 256;
inline constexpr int kConvOwn = 4;

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

  __host__ __device__ std::int64_t row_tiles() const { return (rows + kConvTile - 1) / kConvTile; }
  __host__ __device__ std::int64_t column_tiles() const {
    return (columns + kConvTile - 1) / kConvTile;
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
  at.row = block % tiling.row_tiles() * kConvTile;
  block /= tiling.row_tiles();
  at.column = block % tiling.column_tiles() * kConvTile;
  block /= tiling.column_tiles();
  at.group = block % tiling.groups;
  at.share = block / tiling.groups;
  at.begin = at.share * tiling.share_depth();
  const std::int64_t end = at.begin + tiling.share_depth();
  at.end = end < tiling.depth ? end : tiling.depth;
  return at;
}

// to[d][i] of the step's 16 depths and 64 rows or columns; the depth is the faster one where that
// is how they lie in memory.
template <bool kByDepth, class Element>
__device__ void load_conv_tile(float* to, Element element) {
  for (int e = static_cast<int>(threadIdx.x); e < kConvTile * kConvDepth; e += kConvThreads) {
    const int i = kByDepth ? e / kConvDepth : e % kConvTile;
    const int d = kByDepth ? e % kConvDepth : e / kConvTile;
    to[d * kConvPitch + i] = element(d, i);
  }
}

__device__ inline void multiply_conv_tiles(const float* left, const float* right,
                                           float (&sums)[kConvOwn][kConvOwn]) {
  const int row = static_cast<int>(threadIdx.x) / 16 * kConvOwn;
  const int column = static_cast<int>(threadIdx.x) % 16 * kConvOwn;
  for (int d = 0; d < kConvDepth; ++d) {
    const float4 a = *reinterpret_cast<const float4*>(left + d * kConvPitch + row);
    const float4 b = *reinterpret_cast<const float4*>(right + d * kConvPitch + column);
    const float from_left[kConvOwn] = {a.x, a.y, a.z, a.w};
    const float from_right[kConvOwn] = {b.x, b.y, b.z, b.w};
    for (int i = 0; i < kConvOwn; ++i) {
      for (int j = 0; j < kConvOwn; ++j) {
        sums[i][j] = std::fma(from_left[i], from_right[j], sums[i][j]);
      }
    }
  }
}

// FLOPs: 2 rows columns depth in whole tiles. Bytes: left once for each 64 columns, right once for
// each 64 rows (mostly from L2), the result written once. 9 KiB of shared memory for the tiles, 4
// for places. Sums are formed in the order of the depth, in f32.
template <class Form>
__global__ void __launch_bounds__(kConvThreads)
    conv_tiles(const Form form, const ConvTiling tiling) {
  TRAINSCOPE_SHARED(float, left, kConvDepth* kConvPitch);
  TRAINSCOPE_SHARED(float, right, kConvDepth* kConvPitch);
  TRAINSCOPE_SHARED(ConvPlace, columns, kConvTile);
  TRAINSCOPE_SHARED(ConvPlace, depths, kConvDepth);
  const ConvTileAt at = conv_tile_at(tiling);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kConvTile) {
    const std::int64_t column = at.column + thread;
    columns[thread] = form.column_place(at.group, column < tiling.columns ? column : 0);
    columns[thread].inside = column < tiling.columns;
  }
  float sums[kConvOwn][kConvOwn] = {};
  for (std::int64_t depth = at.begin; depth < at.end; depth += kConvDepth) {
    __syncthreads();  // tiles and places have been read
    if (thread < kConvDepth) {
      const std::int64_t own = depth + thread;
      depths[thread] = form.depth_place(at.group, own < at.end ? own : at.begin);
      depths[thread].inside = own < at.end;
    }
    __syncthreads();
    load_conv_tile<Form::kLeftByDepth>(left, [&](int d, int i) {
      const bool inside = depths[d].inside && at.row + i < tiling.rows;
      return inside ? form.left(at.group, at.row + i, depth + d, depths[d]) : 0.0F;
    });
    load_conv_tile<Form::kRightByDepth>(right, [&](int d, int i) {
      const bool inside = depths[d].inside && columns[i].inside;
      return inside ? form.right(depths[d], columns[i]) : 0.0F;
    });
    __syncthreads();
    multiply_conv_tiles(left, right, sums);
  }
  __syncthreads();  // the places of columns, where the depth is empty
  const int row = thread / 16 * kConvOwn;
  const int column = thread % 16 * kConvOwn;
  for (int i = 0; i < kConvOwn; ++i) {
    for (int j = 0; j < kConvOwn; ++j) {
      if (at.row + row + i >= tiling.rows || !columns[column + j].inside) continue;
      form.store(at, at.row + row + i, at.column + column + j, columns[column + j], sums[i][j]);
    }
  }
}

template <class Form>
void launch_conv(const CallContext& call, const Form& form, const ConvTiling& tiling) {
  launch(call, {.blocks = team_blocks(tiling.blocks(), 1), .threads = dim3(kConvThreads)},
         conv_tiles<Form>, form, tiling);
}

}  // namespace trainscope::cuda
