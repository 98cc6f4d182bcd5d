// Places that indices name, and rows written to places, added to or multiplied into what is there.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/movement/copies.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/support/id_sort.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// --- PutRows, AddRows, MultiplyRows, MaxRows, MinRows --------------------------------------------
// data [rows, width], index [count], updates [count, width] -> y [rows, width], which may be data.

struct Put {
  template <class T>
  __device__ T operator()(T /*old*/, T update) const {
    return update;
  }
};

// Integers wrap around: in the unsigned type, where that is defined.
struct Plus {
  template <class T>
  __device__ T operator()(T old, T update) const {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(old) + static_cast<Wrapping>(update));
    } else {
      return old + update;
    }
  }
};

struct Times {
  template <class T>
  __device__ T operator()(T old, T update) const {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(old) * static_cast<Wrapping>(update));
    } else {
      return old * update;
    }
  }
};

// A NaN stays.
struct Larger {
  template <class T>
  __device__ T operator()(T old, T update) const {
    return update > old || update != update ? update : old;
  }
};

struct Smaller {
  template <class T>
  __device__ T operator()(T old, T update) const {
    return update < old || update != update ? update : old;
  }
};

struct ScatterShape {
  Divisor width;
  std::uint32_t rows = 0;
  std::uint32_t count = 0;  // of updates
  std::uint32_t elements = 0;
};

// A thread an element of y: it applies the updates of its row in the order of the index. With an
// index outside, which is sorted last, floats are NaN everywhere. Reads data and updates once,
// writes y once.
template <class T, class Combine>
__global__ void __launch_bounds__(kPackThreads)
    combine_rows(ScatterShape shape, const T* data, RowRanges ranges, const T* updates, T* y) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= shape.elements) return;
  const std::uint32_t row = shape.width.divide(i);
  const std::int64_t width = shape.width.divisor;
  const std::int64_t column = i - row * width;
  T value = data[i];
  for (std::uint32_t n = ranges.begins[row]; n < ranges.ends[row]; ++n) {
    const T update = updates[ranges.sorted.positions[n] * width + column];
    value = static_cast<T>(Combine{}(computed(value), computed(update)));
  }
  if constexpr (is_float(kDTypeOf<T>)) {
    const bool outside = shape.count > 0 && ranges.sorted.rows[shape.count - 1] == shape.rows;
    if (outside) value = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  }
  y[i] = value;
}

ScatterShape scatter_shape(std::span<const TensorView> inputs) {
  ScatterShape shape;
  shape.rows = static_cast<std::uint32_t>(inputs[0].shape()[0]);
  shape.width = Divisor(static_cast<std::uint32_t>(inputs[0].shape()[1]));
  shape.count = static_cast<std::uint32_t>(inputs[1].elements());
  shape.elements = static_cast<std::uint32_t>(inputs[0].elements());
  return shape;
}

RowRanges ranges_of(const RunArgs& run) {
  const Ids ids{.data = run.inputs[1].data,
                .dtype = DType::kI64,
                .count = run.inputs[1].elements(),
                .size = run.inputs[0].shape()[0],
                .negative = Negative::kOutside};
  return find_row_ranges(run.call, ids, run.workspace);
}

template <class T, class Combine>
void run_combine(const RunArgs& run) {
  if (run.outputs[0].elements() == 0) return;
  launch(run.call, {.blocks = blocks_for(run.outputs[0].elements()), .threads = kPackThreads},
         combine_rows<T, Combine>, scatter_shape(run.inputs), run.inputs[0].as<const T>(),
         ranges_of(run), run.inputs[2].as<const T>(), run.outputs[0].as<T>());
}

Support supports_rows(const PrepareArgs& args) {
  if (const Support ids = supports_ids(args.inputs[1].elements(), args.inputs[0].shape()[0]);
      !ids) {
    return ids;
  }
  return supported_if(args.inputs[0].elements() < kMaxItems,
                      "on CUDA rows that are written to have less than 2^31 elements");
}

Prepared prepare_rows(const PrepareArgs& args) {
  return {.workspace_bytes = row_ranges_bytes(args.inputs[1].elements(), args.inputs[0].shape()[0]),
          .state = nullptr};
}

// Elements of types that are not computed with are only moved. Types of a width are one kernel.
void run_put_bits(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype, [&](auto* type) {
    using Unsigned = Pointee<decltype(type)>;
    run_combine<std::make_signed_t<Unsigned>, Put>(run);
  });
}

// --- MultiplyRowsGrad(g [rows, width], index [count], updates [count, width])
// ----------------------

// The product of the others is that of those before times that of those after: two walks, each with
// a running product. Dividing the whole product by the update would fail at 0.
template <class T>
__global__ void __launch_bounds__(kPackThreads)
    multiply_others(ScatterShape shape, const T* g, RowRanges ranges, const T* updates, T* result) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= shape.elements) return;
  const std::uint32_t row = shape.width.divide(i);
  const std::int64_t width = shape.width.divisor;
  const std::int64_t column = i - row * width;
  const std::uint32_t begin = ranges.begins[row];
  const std::uint32_t end = ranges.ends[row];
  T product = 1;
  for (std::uint32_t n = begin; n < end; ++n) {
    const std::int64_t at = ranges.sorted.positions[n] * width + column;
    result[at] = product;
    product *= updates[at];
  }
  product = 1;
  for (std::uint32_t n = end; n > begin; --n) {
    const std::int64_t at = ranges.sorted.positions[n - 1] * width + column;
    result[at] *= product * g[i];
    product *= updates[at];
  }
}

template <class T>
struct NotANumber {
  __device__ T operator()() const { return std::numeric_limits<T>::quiet_NaN(); }
};

template <class T>
void run_multiply_rows_grad(const RunArgs& run) {
  // What no row owns belongs to an index outside.
  map_elements<T>(run, NotANumber<T>{});
  const std::int64_t elements = run.inputs[0].elements();
  if (elements == 0 || run.outputs[0].elements() == 0) return;
  launch(run.call, {.blocks = blocks_for(elements), .threads = kPackThreads}, multiply_others<T>,
         scatter_shape(run.inputs), run.inputs[0].as<const T>(), ranges_of(run),
         run.inputs[2].as<const T>(), run.outputs[0].as<T>());
}

template <class T>
void add_rows_for(KernelTable& table) {
  const auto add = [&](std::string_view op, std::string_view name, void (*run)(const RunArgs&)) {
    table.add(op, kDTypeOf<T>,
              {.name = name, .supports = supports_rows, .prepare = prepare_rows, .run = run});
  };
  if constexpr (is_float(kDTypeOf<T>)) add("PutRows", "put_rows.cuda", run_combine<T, Put>);
  if constexpr (!kIsStoredOnly<T>) {
    add("AddRows", "add_rows.cuda", run_combine<T, Plus>);
    add("MultiplyRows", "multiply_rows.cuda", run_combine<T, Times>);
    add("MaxRows", "max_rows.cuda", run_combine<T, Larger>);
    add("MinRows", "min_rows.cuda", run_combine<T, Smaller>);
  }
  if constexpr (std::is_floating_point_v<T>) {
    add("MultiplyRowsGrad", "multiply_rows_grad.cuda", run_multiply_rows_grad<T>);
  }
}

}  // namespace

void add_scatter(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    if (is_float(dtype)) continue;
    table.add("PutRows", dtype,
              {.name = "put_rows.cuda",
               .supports = supports_rows,
               .prepare = prepare_rows,
               .run = run_put_bits});
  }
  for_number_types([&](auto* type) { add_rows_for<Pointee<decltype(type)>>(table); });
  add_places(table);
}

}  // namespace trainscope::cuda
