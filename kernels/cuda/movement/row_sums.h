// Sums of rows that belong together, in a given order: the same bits on every run.
#pragma once

#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/movement/indexed_rows.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"

namespace trainscope::cuda {

// Row r of the result is the sum of the terms at positions[begins[r]], ... before ends[r].
struct SummedRanges {
  const std::uint32_t* positions = nullptr;
  const std::uint32_t* begins = nullptr;
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* wanted = nullptr;  // rows from this number on have none; null: all have
};

// terms [outer, count, inner]; sum and y [outer, size, inner].
template <class T>
struct SummedRows {
  const T* terms = nullptr;
  const T* sum = nullptr;  // what is added to, null for zeros; may be y
  T* y = nullptr;
};

struct RowSums {
  std::uint32_t rows = 0;  // outer * size
  std::uint32_t size = 0;
  std::uint32_t slabs = 0;  // of the columns: one warp's packs
  std::int64_t count = 0;
  std::int64_t inner = 0;
};

// One warp a slab of a row. Bytes: a term read once, and by each lane 4 for its position and 8 for
// where the row's positions begin and end; y written once. FLOPs: 1 an element of a term.
template <int kWidth, class T>
__global__ void __launch_bounds__(kPackThreads)
    sum_rows_kernel(RowSums shape, SummedRanges ranges, SummedRows<T> rows) {
  using C = Computed<T>;
  constexpr std::uint32_t kTogether = 4;  // loads that wait for memory at the same time
  const std::int64_t warp = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  const std::int64_t line = warp / shape.slabs;
  const std::int64_t column =
      (warp % shape.slabs * kWarp + threadIdx.x % kWarp) * std::int64_t{kWidth};
  if (line >= shape.rows || column >= shape.inner) return;
  const std::int64_t row = line % shape.size;
  const bool has_terms = ranges.wanted == nullptr || row < *ranges.wanted;
  std::uint32_t n = has_terms ? ranges.begins[row] : 0;
  const std::uint32_t end = has_terms ? ranges.ends[row] : 0;
  const T* from = rows.terms + line / shape.size * shape.count * shape.inner + column;
  C total[kWidth];
  for (int k = 0; k < kWidth; ++k) {
    total[k] = rows.sum == nullptr ? C{0} : computed(rows.sum[line * shape.inner + column + k]);
  }
  for (; n + kTogether <= end; n += kTogether) {
    Pack<T, kWidth> packs[kTogether];
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      packs[i] = load_pack<T, kWidth>(from + ranges.positions[n + i] * shape.inner, false);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      for (int k = 0; k < kWidth; ++k) total[k] += computed(packs[i].values[k]);
    }
  }
  for (; n < end; ++n) {
    const auto pack = load_pack<T, kWidth>(from + ranges.positions[n] * shape.inner, false);
    for (int k = 0; k < kWidth; ++k) total[k] += computed(pack.values[k]);
  }
  Pack<T, kWidth> result;
  for (int k = 0; k < kWidth; ++k) result.values[k] = static_cast<T>(total[k]);
  *reinterpret_cast<Pack<T, kWidth>*>(rows.y + line * shape.inner + column) = result;
}

template <int kWidth, class T>
void sum_rows_in_packs(const CallContext& call, const IndexedRows& shape,
                       const SummedRanges& ranges, const SummedRows<T>& rows) {
  constexpr std::int64_t kSlab = kWarp * kWidth;
  RowSums sums;
  sums.rows = static_cast<std::uint32_t>(shape.outer * shape.size);
  sums.size = static_cast<std::uint32_t>(shape.size);
  sums.slabs = static_cast<std::uint32_t>((shape.inner + kSlab - 1) / kSlab);
  sums.count = shape.count;
  sums.inner = shape.inner;
  launch(
      call,
      {.blocks = blocks_for(std::int64_t{sums.rows} * sums.slabs * kWarp), .threads = kPackThreads},
      sum_rows_kernel<kWidth, T>, sums, ranges, rows);
}

// The result is not empty.
template <class T>
void sum_rows(const CallContext& call, const IndexedRows& shape, const SummedRanges& ranges,
              const SummedRows<T>& rows) {
  const bool wide = shape.inner % kPackWidth == 0 && takes_packs(rows.terms) && takes_packs(rows.y);
  if (wide) return sum_rows_in_packs<kPackWidth, T>(call, shape, ranges, rows);
  sum_rows_in_packs<1, T>(call, shape, ranges, rows);
}

}  // namespace trainscope::cuda
