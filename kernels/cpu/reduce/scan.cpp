// Running sums along an axis, accumulated in double.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/reduce/axis_layout.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kColumns = 64;  // summed together, as many as a few cache lines hold

// Integers wrap around.
template <class T>
using Accumulator = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                                std::type_identity<double>>::type;

// A block of columns of [outer, size, inner], `stride` elements from row to row in the direction
// of the sum.
template <class T>
struct Block {
  const T* x = nullptr;
  T* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

// y may be x: an element is read before the sum takes its place.
template <class T>
void sum_block(const Block<T>& block, bool exclusive) {
  std::array<Accumulator<T>, kColumns> sums{};
  const T* x = block.x;
  T* y = block.y;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    for (std::int64_t c = 0; c < block.columns; ++c) {
      Accumulator<T>& sum = sums[static_cast<std::size_t>(c)];
      const Accumulator<T> before = sum;
      sum += static_cast<Accumulator<T>>(x[c]);
      y[c] = static_cast<T>(exclusive ? before : sum);
    }
    x += block.stride;
    y += block.stride;
  }
}

template <class T>
void run_cumsum(const RunArgs& run) {
  const auto& params = std::get<ScanParams>(run.params);
  const AxisLayout shape = axis_layout(run.outputs[0].shape(), params.axis);
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  if (run.outputs[0].elements() == 0) return;
  const std::int64_t blocks = (shape.inner + kColumns - 1) / kColumns;
  const std::int64_t first_row = params.reverse ? (shape.size - 1) * shape.inner : 0;
  const std::int64_t stride = params.reverse ? -shape.inner : shape.inner;
  const bool exclusive = params.exclusive;
  const std::int64_t grain = row_grain(shape.size * std::min(kColumns, shape.inner));
  parallel_for(run.threads, shape.outer * blocks, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t column = task % blocks * kColumns;
      const std::int64_t at = task / blocks * shape.size * shape.inner + first_row + column;
      sum_block<T>({.x = x + at,
                    .y = y + at,
                    .rows = shape.size,
                    .columns = std::min(kColumns, shape.inner - column),
                    .stride = stride},
                   exclusive);
    }
  });
}

template <class T>
void add_scan_for(KernelTable& table) {
  table.add("CumSum", kDTypeOf<T>, {.name = "cumsum", .run = run_cumsum<T>});
}

constexpr Kernel kCumSum{.name = "cumsum", .run = run_cumsum<std::int64_t>};

}  // namespace

void add_scan(KernelTable& table) {
  add_scan_for<float>(table);
  add_scan_for<double>(table);
  add_scan_for<std::int32_t>(table);
  add_scan_for<std::int64_t>(table);
  add_scan_for<std::uint64_t>(table);
  add_upcast_integers<kCumSum>(table, "CumSum", kCumSum.name);
}

}  // namespace trainscope::cpu
