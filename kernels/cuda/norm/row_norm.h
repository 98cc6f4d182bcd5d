// What normalisations over rows [rows, width] share: layouts, packs, statistics.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
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

template <int kWidth, typename T>
__device__ Pack<T, kWidth> row_pack(const T* row, std::int64_t i) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(row + i);
}

// Calls run(width) with how many elements of a row a thread moves at a time: 4 where rows are whole
// packs and all addresses allow it.
template <int kWidthOfPacks>
struct RowPack {
  static constexpr int kWidth = kWidthOfPacks;
};
template <class Run>
void with_row_packs(std::int64_t width, std::initializer_list<const void*> addresses, Run run) {
  const bool packs = width % kPackWidth == 0 &&
                     std::all_of(addresses.begin(), addresses.end(), [](const void* address) {
                       return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
                     });
  if (packs) return run(RowPack<kPackWidth>{});
  run(RowPack<1>{});
}

struct RowStatistics {
  double mean;
  double inverse;  // 1 / sqrt(variance + epsilon)
};

// One pass over the row: sums of x - shift and its square, where the shift is an element of the
// row, so that nothing cancels. A row that is not centered has the mean 0.
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
      const double d = static_cast<double>(pack.values[k]) - shift;
      sums[0] += d;
      sums[1] = std::fma(d, d, sums[1]);
    }
  }
  Team::sums(sums);
  const double n = static_cast<double>(width);
  const double mean = centered ? sums[0] / n : 0.0;
  const double variance = sums[1] / n - mean * mean;
  // `variance > 0` would lose a NaN.
  return {shift + mean, 1.0 / std::sqrt((variance < 0.0 ? 0.0 : variance) + epsilon)};
}

}  // namespace trainscope::cuda
