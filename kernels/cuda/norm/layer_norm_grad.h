// What the kernels of LayerNormalizationGrad and RMSNormalizationGrad work on, and the one for rows
// whose elements fit in the registers of a warp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/norm/row_norm.h"

namespace trainscope::cuda {

template <typename T>
struct LayerNormGrad {
  const T* dy;               // [rows, width]
  const T* x;                // [rows, width]
  const Computed<T>* scale;  // [width]
  const T* addend;           // [rows, width], or null
  T* dx;                     // [rows, width], may be dy, x or the addend
  float* sums;               // [blocks, 2, width], or null: nobody asks for them
  std::int64_t rows;
  std::int64_t width;
  std::int64_t rows_of_block;
  double epsilon;
  bool centered;
};

// Rows of a block, [begin, end).
template <typename T>
struct RowsOfBlock {
  std::int64_t begin;
  std::int64_t end;

  __device__ explicit RowsOfBlock(const LayerNormGrad<T>& a)
      : begin(std::int64_t{blockIdx.x} * a.rows_of_block),
        end(begin + a.rows_of_block < a.rows ? begin + a.rows_of_block : a.rows) {}
};

// An element of dx: `normalized` is that of x, g = dy * scale.
template <typename C>
struct GradientOfRow {
  C inverse;
  C mean_g;
  C mean_gx;  // of g * normalized

  __device__ C at(C g, C normalized) const { return inverse * (g - mean_g - normalized * mean_gx); }
};

inline constexpr int kNormWarps = 4;  // of a block
// Elements that a lane may have of a row: with two sums of each, 220 registers.
inline constexpr int kMostLaneColumns = 32;

// The columns of a lane: packs of kWidth, kWarp of them apart.
template <int kWidth, int kPacks>
struct LaneColumns {
  std::int64_t width;
  int first;

  __device__ explicit LaneColumns(std::int64_t of_row)
      : width(of_row), first(static_cast<int>(threadIdx.x) % kWarp * kWidth) {}
  __device__ int column(int pack) const { return first + pack * kWarp * kWidth; }
  __device__ bool has(int pack) const { return column(pack) < width; }

  template <typename T>
  __device__ void load(const T* row, Pack<T, kWidth> (&packs)[kPacks]) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      packs[p] = Pack<T, kWidth>{};
      if (has(p)) packs[p] = row_pack<kWidth>(row, column(p));
    }
  }
};

// row_statistics() of a row that a warp holds.
template <int kWidth, int kPacks, typename T>
__device__ RowStatistics held_row_statistics(const LaneColumns<kWidth, kPacks>& own,
                                             const Pack<T, kWidth> (&x)[kPacks], double epsilon,
                                             bool centered) {
  const float first = static_cast<float>(x[0].values[0]);
  const double shift = centered ? static_cast<double>(__shfl_sync(kWholeWarp, first, 0)) : 0.0;
  double sums[2] = {0.0, 0.0};
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (!own.has(p)) continue;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      add_deviation(static_cast<double>(static_cast<float>(x[p].values[k])) - shift, sums);
    }
  }
  WarpTeam::sums(sums);
  return statistics_of_sums(sums, shift, own.width, epsilon, centered);
}

// sums [2, width] of the block in shared memory: those of its warps, added in their order.
template <int kWidth, int kPacks>
__device__ void add_warps(const LaneColumns<kWidth, kPacks>& own,
                          const float (&dscale)[kPacks * kWidth],
                          const float (&dbias)[kPacks * kWidth], float* shared) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int turn = 0; turn < kNormWarps; ++turn) {
    if (turn == warp) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        if (!own.has(p)) continue;
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          float* const to = shared + own.column(p) + k;
          to[0] = (turn == 0 ? 0.0F : to[0]) + dscale[p * kWidth + k];
          to[own.width] = (turn == 0 ? 0.0F : to[own.width]) + dbias[p * kWidth + k];
        }
      }
    }
    __syncthreads();
  }
}

// A warp computes a row at a time, which it holds in registers, and each lane the sums of its
// columns over the rows of the warp: nothing but the last sums waits for another warp. Width at
// most 32 kWidth kPacks, and whole packs. Bytes: dy, x and the addend read once, dx written once, 8
// * width of sums a block; the scale comes from L1.
template <int kWidth, int kPacks, typename T>
__global__ void __launch_bounds__(kNormWarps* kWarp, 2)
    layer_norm_grad_warps(const LayerNormGrad<T> a) {
  using C = Computed<T>;
  TRAINSCOPE_SHARED_DYNAMIC(float, shared);
  const LaneColumns<kWidth, kPacks> own(a.width);
  const RowsOfBlock<T> rows(a);
  float dscale[kPacks * kWidth] = {};
  float dbias[kPacks * kWidth] = {};
  for (std::int64_t r = rows.begin + threadIdx.x / kWarp; r < rows.end; r += kNormWarps) {
    Pack<T, kWidth> x[kPacks];
    Pack<T, kWidth> dy[kPacks];
    own.load(a.x + r * a.width, x);
    own.load(a.dy + r * a.width, dy);
    const RowStatistics statistics = held_row_statistics(own, x, a.epsilon, a.centered);
    const C mean = static_cast<C>(statistics.mean);
    const C inverse = static_cast<C>(statistics.inverse);
    C row_sums[2] = {0, 0};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!own.has(p)) continue;
      const auto scale = row_pack<kWidth>(a.scale, own.column(p));
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const C normalized = (static_cast<C>(x[p].values[k]) - mean) * inverse;
        const C given = static_cast<C>(dy[p].values[k]);
        const C g = given * scale.values[k];
        row_sums[0] += g;
        row_sums[1] += g * normalized;
        dscale[p * kWidth + k] += given * normalized;
        dbias[p * kWidth + k] += given;
      }
    }
    WarpTeam::sums(row_sums);
    const GradientOfRow<C> gradient{
        .inverse = inverse,
        .mean_g = a.centered ? row_sums[0] / static_cast<C>(a.width) : C{0},
        .mean_gx = row_sums[1] / static_cast<C>(a.width)};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!own.has(p)) continue;
      const auto scale = row_pack<kWidth>(a.scale, own.column(p));
      Pack<T, kWidth> addend{};
      if (a.addend != nullptr) addend = row_pack<kWidth>(a.addend + r * a.width, own.column(p));
      Pack<T, kWidth> result;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const C dx = gradient.at(static_cast<C>(dy[p].values[k]) * scale.values[k],
                                 (static_cast<C>(x[p].values[k]) - mean) * inverse);
        result.values[k] =
            static_cast<T>(a.addend == nullptr ? dx : static_cast<C>(addend.values[k]) + dx);
      }
      put_row_pack(a.dx + r * a.width, own.column(p), result);
    }
  }
  if (a.sums == nullptr) return;
  add_warps(own, dscale, dbias, shared);
  float* const to = a.sums + std::int64_t{blockIdx.x} * 2 * a.width;
  for (std::int64_t i = threadIdx.x; i < 2 * a.width; i += blockDim.x) to[i] = shared[i];
}

// Calls run(LaneColumns) with the fewest packs that hold a row of this width; false: too wide, or
// no whole packs.
template <int kWidth, class Run>
bool with_lane_columns(std::int64_t width, Run run) {
  if (width % kWidth != 0 || width > kMostLaneColumns * kWarp) return false;
  constexpr int kEights = 8 / kWidth;  // packs of eight columns
  const auto with = [&]<int kPacks>(std::integral_constant<int, kPacks>) {
    if (width > kPacks * kWarp * kWidth) return false;
    run.template operator()<kPacks>();
    return true;
  };
  return with(std::integral_constant<int, kEights>{}) ||
         with(std::integral_constant<int, 2 * kEights>{}) ||
         with(std::integral_constant<int, 3 * kEights>{}) ||
         with(std::integral_constant<int, 4 * kEights>{});
}

}  // namespace trainscope::cuda
