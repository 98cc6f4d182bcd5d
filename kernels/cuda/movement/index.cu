// Rows that indices name, and the gradient of such a lookup.
#include <cstdint>
#include <limits>
#include <memory>
#include <variant>

#include "kernels/api/element_bits.h"
#include "kernels/api/kernel.h"
#include "kernels/cuda/movement/indexed_rows.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/movement/row_sums.h"
#include "kernels/cuda/support/id_sort.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/strides.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// --- Gather: x [outer, size, inner], indices [count] -> y [outer, count, inner]
// --------------------

// What a lookup outside gives: NaN where the type has it, else 0. The host does not hear of it.
double outside_value(DType dtype) {
  return is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
}

// An item is a pack of a row, or an element.
struct GatherItems {
  std::uint32_t items = 0;
  Divisor of_row;  // items
  Divisor count;
  std::int64_t size = 0;
  std::int64_t inner = 0;
};

// A thread a pack of y. Bytes: a pack of x and its row's index read, a pack of y written.
template <int kWidth, class T, class I>
__global__ void __launch_bounds__(kPackThreads)
    gather_rows(GatherItems shape, const T* x, const I* indices, T outside, T* y) {
  const std::uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= shape.items) return;
  const std::uint32_t row = shape.of_row.divide(item);
  const std::int64_t column = std::int64_t{item - row * shape.of_row.divisor} * kWidth;
  const std::uint32_t outer = shape.count.divide(row);
  const std::int64_t index = indices[row - outer * shape.count.divisor];
  const std::int64_t place = index < 0 ? index + shape.size : index;
  Pack<T, kWidth> pack;
  if (place >= 0 && place < shape.size) {
    const T* from = x + (outer * shape.size + place) * shape.inner + column;
    pack = load_pack<T, kWidth>(from, false);
  } else {
    pack = load_pack<T, kWidth>(&outside, true);
  }
  *reinterpret_cast<Pack<T, kWidth>*>(y + row * shape.inner + column) = pack;
}

template <int kWidth, class T, class I>
void gather(const RunArgs& run, const IndexedRows& rows, T outside) {
  const std::int64_t items = rows.outer * rows.count * (rows.inner / kWidth);
  GatherItems shape;
  shape.items = static_cast<std::uint32_t>(items);
  shape.of_row = Divisor(static_cast<std::uint32_t>(rows.inner / kWidth));
  shape.count = Divisor(static_cast<std::uint32_t>(rows.count));
  shape.size = rows.size;
  shape.inner = rows.inner;
  launch(run.call, {.blocks = blocks_for(items), .threads = kPackThreads},
         gather_rows<kWidth, T, I>, shape, run.inputs[0].as<const T>(), run.inputs[1].as<const I>(),
         outside, run.outputs[0].as<T>());
}

template <class T, class I>
void gather(const RunArgs& run, T outside) {
  const IndexedRows rows = indexed_rows(
      run.inputs[0].shape(), std::get<AxisParams>(run.params).axis, run.inputs[1].elements());
  const bool wide = rows.inner % kPackWidth == 0 && takes_packs(run.inputs[0].as<const T>()) &&
                    takes_packs(run.outputs[0].as<const T>());
  if (wide) return gather<kPackWidth, T, I>(run, rows, outside);
  gather<1, T, I>(run, rows, outside);
}

void run_gather(const RunArgs& run) {
  const DType dtype = run.inputs[0].type.dtype;
  if (run.outputs[0].elements() == 0) return;
  with_width(dtype, [&](auto* type) {
    using T = Pointee<decltype(type)>;
    const T outside = element_bits<T>(dtype, outside_value(dtype));
    if (run.inputs[1].type.dtype == DType::kI32) return gather<T, std::int32_t>(run, outside);
    gather<T, std::int64_t>(run, outside);
  });
}

Support supports_gather(const PrepareArgs& args) {
  return supported_if(args.outputs[0].elements() < kMaxItems,
                      "on CUDA a lookup gives less than 2^31 elements");
}

// --- GatherGrad: dy [outer, count, inner], indices [count] -> dx [outer, size, inner]
// --------------

IndexedRows rows_of_gradient(const Params& params, std::span<const TensorView> inputs,
                             std::span<const TensorView> outputs) {
  return indexed_rows(outputs[0].shape(), std::get<AxisParams>(params).axis, inputs[1].elements());
}

Support supports_gather_grad(const PrepareArgs& args) {
  const IndexedRows rows = rows_of_gradient(args.params, args.inputs, args.outputs);
  if (const Support ids = supports_ids(rows.count, rows.size); !ids) return ids;
  return supported_if(args.outputs[0].elements() < kMaxItems,
                      "on CUDA the gradient of a lookup has less than 2^31 elements");
}

Prepared prepare_gather_grad(const PrepareArgs& args) {
  const IndexedRows rows = rows_of_gradient(args.params, args.inputs, args.outputs);
  return {.workspace_bytes = row_ranges_bytes(rows.count, rows.size), .state = nullptr};
}

template <class T>
void run_gather_grad(const RunArgs& run) {
  if (run.outputs[0].elements() == 0) return;
  const IndexedRows rows = rows_of_gradient(run.params, run.inputs, run.outputs);
  const Ids ids{.data = run.inputs[1].data,
                .dtype = run.inputs[1].type.dtype,
                .count = rows.count,
                .size = rows.size,
                .negative = Negative::kFromTheEnd};
  const RowRanges ranges = find_row_ranges(run.call, ids, run.workspace);
  const bool has_sum = run.inputs.size() > 2 && run.inputs[2].present;
  sum_rows<T>(run.call, rows,
              {.positions = ranges.sorted.positions,
               .begins = ranges.begins,
               .ends = ranges.ends,
               .wanted = nullptr},
              {.terms = run.inputs[0].as<const T>(),
               .sum = has_sum ? run.inputs[2].as<const T>() : nullptr,
               .y = run.outputs[0].as<T>()});
}

}  // namespace

void add_index(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    table.add("Gather", dtype,
              {.name = "gather.cuda", .supports = supports_gather, .run = run_gather});
  }
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("GatherGrad", kDTypeOf<T>,
              {.name = "gather_grad.cuda",
               .supports = supports_gather_grad,
               .prepare = prepare_gather_grad,
               .run = run_gather_grad<T>});
  });
  add_sums_by_id(table);
}

}  // namespace trainscope::cuda
