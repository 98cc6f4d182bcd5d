// What the kernels of LayerNormalizationGrad and RMSNormalizationGrad work on, and the one for rows
// whose elements fit in the registers of a warp.
#pragma once

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

// What a row of x is normalised by.
template <typename C>
struct RowNorm {
  C mean;
  C inverse;

  __device__ explicit RowNorm(const RowStatistics& statistics)
      : mean(static_cast<C>(statistics.mean)), inverse(static_cast<C>(statistics.inverse)) {}
  template <typename T>
  __device__ C normalized(T x) const {
    return (static_cast<C>(x) - mean) * inverse;
  }
};

// Adds a pack's part to the sums of its columns, and to those of the row: of g = dy * scale, and of
// g * (normalized x).
template <int kWidth, typename T, typename C>
__device__ __forceinline__ void add_gradients(const RowNorm<C>& norm, const Pack<T, kWidth>& x,
                                              const Pack<T, kWidth>& dy,
                                              const Pack<C, kWidth>& scale, float* dscale,
                                              float* dbias, C (&row_sums)[2]) {
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const C normalized = norm.normalized(x.values[k]);
    const C given = static_cast<C>(dy.values[k]);
    const C g = given * scale.values[k];
    row_sums[0] += g;
    row_sums[1] += g * normalized;
    dscale[k] += given * normalized;
    dbias[k] += given;
  }
}

// A pack of dx + addend, of a row whose sums are known.
template <int kWidth, typename T, typename C>
__device__ __forceinline__ Pack<T, kWidth> gradient_pack(
    const LayerNormGrad<T>& a, const RowNorm<C>& norm, const C (&row_sums)[2],
    const Pack<T, kWidth>& x, const Pack<T, kWidth>& dy, const Pack<C, kWidth>& scale,
    const Pack<T, kWidth>& addend) {
  const C mean_g = a.centered ? row_sums[0] / static_cast<C>(a.width) : C{0};
  const C mean_gx = row_sums[1] / static_cast<C>(a.width);
  Pack<T, kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const C g = static_cast<C>(dy.values[k]) * scale.values[k];
    const C dx = norm.inverse * (g - mean_g - norm.normalized(x.values[k]) * mean_gx);
    result.values[k] =
        static_cast<T>(a.addend == nullptr ? dx : static_cast<C>(addend.values[k]) + dx);
  }
  return result;
}

inline constexpr int kNormWarps = 4;  // of a block
// Elements that a lane may have of a row: with two sums of each, some 200 registers.
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
// * width of sums a block; the scale comes from L1, twice a row.
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
    const RowNorm<C> norm(held_row_statistics(own, x, a.epsilon, a.centered));
    C row_sums[2] = {0, 0};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!own.has(p)) continue;
      const auto scale = row_pack<kWidth>(a.scale, own.column(p));
      add_gradients(norm, x[p], dy[p], scale, dscale + p * kWidth, dbias + p * kWidth, row_sums);
    }
    WarpTeam::sums(row_sums);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!own.has(p)) continue;
      const auto scale = row_pack<kWidth>(a.scale, own.column(p));
      Pack<T, kWidth> addend{};
      if (a.addend != nullptr) addend = row_pack<kWidth>(a.addend + r * a.width, own.column(p));
      put_row_pack(a.dx + r * a.width, own.column(p),
                   gradient_pack(a, norm, row_sums, x[p], dy[p], scale, addend));
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
