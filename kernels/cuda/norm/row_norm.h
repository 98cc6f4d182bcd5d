// What normalisations over rows [rows, width] share: layouts, packs, statistics.
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/block_sums.h"
#include "kernels/cuda/support/pack.h"

namespace trainscope::cuda {

struct RowLayout {
  std::int64_t rows = 1;
  std::int64_t width = 1;
};

inline RowLayout row_layout(const Params& params, const Shape& x) {
  const int axis = std::get<NormParams>(params).axis;
  RowLayout layout;
  for (int a = 0; a < axis; ++a) layout.rows *= x[a];
  for (int a = axis; a < x.rank; ++a) layout.width *= x[a];
  return layout;
}

template <class T, int kWidth>
__device__ bool begins_pack(const T* address) {
  return reinterpret_cast<std::uintptr_t>(address) % alignof(Pack<T, kWidth>) == 0;
}

// Elements i .. i + kWidth - 1 of a row: at once where the address allows it, else one by one.
template <int kWidth, typename T>
__device__ Pack<T, kWidth> row_pack(const T* row, std::int64_t i) {
  if (begins_pack<T, kWidth>(row + i)) {
    return *reinterpret_cast<const Pack<T, kWidth>*>(row + i);
  }
  Pack<T, kWidth> pack;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) pack.values[k] = row[i + k];
  return pack;
}
template <int kWidth, typename T>
__device__ void put_row_pack(T* row, std::int64_t i, const Pack<T, kWidth>& pack) {
  if (begins_pack<T, kWidth>(row + i)) {
    *reinterpret_cast<Pack<T, kWidth>*>(row + i) = pack;
    return;
  }
#pragma unroll
  for (int k = 0; k < kWidth; ++k) row[i + k] = pack.values[k];
}

// Calls run(width) with how many elements of a row a thread works on at a time: kMost or kPackWidth
// where rows are whole packs of these. Where operands begin changes no sum's order.
template <int kWidthOfPacks>
struct RowPack {
  static constexpr int kWidth = kWidthOfPacks;
};
template <int kMost = kPackWidth, class Run>
void with_row_packs(std::int64_t width, Run run) {
  if (width % kMost == 0) return run(RowPack<kMost>{});
  if constexpr (kMost != kPackWidth) {
    if (width % kPackWidth == 0) return run(RowPack<kPackWidth>{});
  }
  run(RowPack<1>{});
}

struct RowStatistics {
  double mean;
  double inverse;  // 1 / sqrt(variance + epsilon)
};

// sums += {d, d d}
__device__ inline void add_deviation(double d, double (&sums)[2]) {
  sums[0] += d;
  sums[1] = std::fma(d, d, sums[1]);
}
// Of the sums of a row's x - shift and its square. A row that is not centered has the mean 0.
__device__ inline RowStatistics statistics_of_sums(const double (&sums)[2], double shift,
                                                   std::int64_t width, double epsilon,
                                                   bool centered) {
  const double n = static_cast<double>(width);
  const double mean = centered ? sums[0] / n : 0.0;
  const double variance = sums[1] / n - mean * mean;
  // `variance > 0` would lose a NaN.
  return {shift + mean, 1.0 / std::sqrt((variance < 0.0 ? 0.0 : variance) + epsilon)};
}

// One pass over the row. The shift is an element of the row, so that nothing cancels.
template <class Team, int kWidth, typename T>
__device__ RowStatistics row_statistics(const T* x, std::int64_t width, double epsilon,
                                        bool centered) {
  if (width == 0) return {0.0, 0.0};
  const double shift = centered ? static_cast<double>(x[0]) : 0.0;
  double sums[2] = {0.0, 0.0};
  for (std::int64_t i = Team::rank() * kWidth; i < width; i += Team::size() * kWidth) {
    const auto pack = row_pack<kWidth>(x, i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      add_deviation(static_cast<double>(pack.values[k]) - shift, sums);
    }
  }
  Team::sums(sums);
  return statistics_of_sums(sums, shift, width, epsilon, centered);
}

}  // namespace trainscope::cuda
