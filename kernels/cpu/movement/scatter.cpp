// Places that indices name, and rows written to places, added to or multiplied into what is there.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/movement_layout.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/strided_loop.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

// The place an index means: negative ones count from the end; -1 when it is outside.
template <class I>
std::int64_t resolved(I index, std::int64_t size) {
  const std::int64_t place = index < 0 ? std::int64_t{index} + size : std::int64_t{index};
  return place >= 0 && place < size ? place : -1;
}

// --- ElementIndex(indices, shape) ----------------------------------------------------------------

template <class I>
void element_index(const RunArgs& run) {
  const auto& plan = *static_cast<const ElementLayout*>(run.state);
  const I* indices = run.inputs[0].as<const I>();
  auto* places = run.outputs[0].as<std::int64_t>();
  const std::int64_t stride = plan.loop.row_stride(1);
  parallel_for(run.threads, run.outputs[0].elements(), kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for_each_row(plan.loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                   for (std::int64_t i = 0; i < count; ++i) {
                     const std::int64_t place = resolved(indices[at[0] + i], plan.size);
                     places[at[0] + i] =
                         place < 0 ? plan.outside : at[1] + i * stride + place * plan.step;
                   }
                 });
               });
}

// --- SliceIndex(indices, shape) ------------------------------------------------------------------

// AxisParams::axis is the number of leading axes that the indices share with the tensor.
template <class I>
void slice_index(const RunArgs& run) {
  const int batch_axes = std::get<AxisParams>(run.params).axis;
  const Shape data = indexed_shape(run.inputs[1]);
  const Shape& shape = run.inputs[0].shape();
  const I* indices = run.inputs[0].as<const I>();  // [tuples, length]
  auto* places = run.outputs[0].as<std::int64_t>();
  const std::int64_t tuples = run.outputs[0].elements();
  const auto length = static_cast<int>(shape[shape.rank - 1]);
  std::int64_t batches = 1;
  for (int axis = 0; axis < batch_axes; ++axis) batches *= shape[axis];
  std::int64_t slices = batches;
  for (int k = 0; k < length; ++k) slices *= data[batch_axes + k];
  const std::int64_t per_batch = batches == 0 ? 1 : std::max<std::int64_t>(1, tuples / batches);
  parallel_for(run.threads, tuples, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      std::int64_t slice = n / per_batch;
      for (int k = 0; k < length && slice != slices; ++k) {
        const std::int64_t size = data[batch_axes + k];
        const std::int64_t place = resolved(indices[n * length + k], size);
        slice = place < 0 ? slices : slice * size + place;
      }
      places[n] = slice;
    }
  });
}

// --- PutRows, AddRows, MultiplyRows, MaxRows, MinRows --------------------------------------------

// A part of the result [rows, width] that one thread owns: it writes all that belongs there, in the
// order of the index, so that the result does not depend on the division of the work.
struct Owned {
  std::int64_t row_begin, row_end;
  std::int64_t column_begin, column_end;
};

struct Sizes {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t count = 0;  // of updates
};

Sizes sizes_of(const RunArgs& run) {
  return {.rows = run.inputs[0].shape()[0],
          .width = run.inputs[0].shape()[1],
          .count = run.inputs[1].elements()};
}

// Columns where they are wide enough, else rows.
template <class F>
void divide(const RunArgs& run, const Sizes& sizes, F&& f) {
  constexpr std::int64_t kMinColumns = 32;  // two cache lines of floats for each thread
  if (sizes.rows == 0 || sizes.width == 0) return;
  if (sizes.width >= kMinColumns * run.threads) {
    const std::int64_t grain = std::max(kMinColumns, row_grain(sizes.rows + sizes.count));
    parallel_for(run.threads, sizes.width, grain, [&](std::int64_t begin, std::int64_t end) {
      f(Owned{0, sizes.rows, begin, end});
    });
  } else {
    const std::int64_t work = (sizes.rows + sizes.count) * sizes.width;
    parallel_for(run.threads, sizes.rows, row_grain(work / sizes.rows),
                 [&](std::int64_t begin, std::int64_t end) {
                   f(Owned{begin, end, 0, sizes.width});
                 });
  }
}

struct Put {
  template <class T>
  static T apply(T /*old*/, T update) {
    return update;
  }
};

// Integers wrap around: in the unsigned type, where that is defined.
struct Add {
  template <class T>
  static T apply(T old, T update) {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(old) + static_cast<Wrapping>(update));
    } else {
      return old + update;
    }
  }
};

struct Multiply {
  template <class T>
  static T apply(T old, T update) {
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
  static T apply(T old, T update) {
    return update > old || update != update ? update : old;
  }
};

struct Smaller {
  template <class T>
  static T apply(T old, T update) {
    return update < old || update != update ? update : old;
  }
};

template <class T, class Combine>
struct Scatter {
  Sizes sizes;
  const std::int64_t* index;  // [count]
  const T* updates;           // [count, width]
  T* y;                       // [rows, width]

  void run(const Owned& owned) const {
    bool outside = false;
    for (std::int64_t n = 0; n < sizes.count; ++n) {
      const std::int64_t row = index[n];
      outside = outside || row < 0 || row >= sizes.rows;
      if (row < owned.row_begin || row >= owned.row_end) continue;
      const T* from = updates + n * sizes.width;
      T* to = y + row * sizes.width;
#pragma omp simd
      for (std::int64_t c = owned.column_begin; c < owned.column_end; ++c) {
        to[c] = Combine::apply(to[c], from[c]);
      }
    }
    if (outside) poison(owned);
  }

  void poison(const Owned& owned) const {
    if constexpr (is_float(kDTypeOf<T>)) {
      const auto nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      for (std::int64_t row = owned.row_begin; row < owned.row_end; ++row) {
        std::fill(y + row * sizes.width + owned.column_begin,
                  y + row * sizes.width + owned.column_end, nan);
      }
    }
  }
};

// y may be the data.
template <class T, class Combine>
void scatter_rows(const RunArgs& run) {
  const T* data = run.inputs[0].as<const T>();
  const Scatter<T, Combine> scatter{.sizes = sizes_of(run),
                                    .index = run.inputs[1].as<const std::int64_t>(),
                                    .updates = run.inputs[2].as<const T>(),
                                    .y = run.outputs[0].as<T>()};
  T* y = scatter.y;
  if (y != data) {
    parallel_for(run.threads, run.outputs[0].elements(), kElementGrain,
                 [=](std::int64_t begin, std::int64_t end) {
                   std::copy(data + begin, data + end, y + begin);
                 });
  }
  divide(run, scatter.sizes, [&](const Owned& owned) { scatter.run(owned); });
}

// --- MultiplyRowsGrad(g [rows, width], index [count], updates [count, width]) ------------------

// The product of the others is that of those before times that of those after: two walks, each with
// a running product per row. Dividing the whole product by the update would fail at 0.
template <class T>
struct ProductGrad {
  Sizes sizes;
  const T* g;
  const std::int64_t* index;
  const T* updates;
  T* running;  // [rows, width]
  T* result;   // [count, width]

  void run(const Owned& owned) const {
    restart(owned);
    for (std::int64_t n = 0; n < sizes.count; ++n) {
      if (!owns(owned, n)) continue;
      for (std::int64_t c = owned.column_begin; c < owned.column_end; ++c) {
        T& product = running[index[n] * sizes.width + c];
        result[n * sizes.width + c] = product;
        product *= updates[n * sizes.width + c];
      }
    }
    restart(owned);
    for (std::int64_t n = sizes.count; n-- > 0;) {
      if (!owns(owned, n)) continue;
      for (std::int64_t c = owned.column_begin; c < owned.column_end; ++c) {
        const std::int64_t at = index[n] * sizes.width + c;
        result[n * sizes.width + c] *= running[at] * g[at];
        running[at] *= updates[n * sizes.width + c];
      }
    }
  }

  bool owns(const Owned& owned, std::int64_t n) const {
    return index[n] >= owned.row_begin && index[n] < owned.row_end;
  }
  void restart(const Owned& owned) const {
    for (std::int64_t row = owned.row_begin; row < owned.row_end; ++row) {
      std::fill(running + row * sizes.width + owned.column_begin,
                running + row * sizes.width + owned.column_end, T{1});
    }
  }
};

Prepared prepare_product_grad(const PrepareArgs& args) {
  return {.workspace_bytes = args.inputs[0].type.bytes(), .state = nullptr};
}

template <class T>
void multiply_rows_grad(const RunArgs& run) {
  const ProductGrad<T> grad{.sizes = sizes_of(run),
                            .g = run.inputs[0].as<const T>(),
                            .index = run.inputs[1].as<const std::int64_t>(),
                            .updates = run.inputs[2].as<const T>(),
                            .running = static_cast<T*>(run.workspace),
                            .result = run.outputs[0].as<T>()};
  // What no row owns belongs to an index outside.
  std::fill_n(grad.result, run.outputs[0].elements(), std::numeric_limits<T>::quiet_NaN());
  divide(run, grad.sizes, [&](const Owned& owned) { grad.run(owned); });
}

template <class T>
void add_rows(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  // Floats of an index outside become NaN.
  if constexpr (is_float(dtype)) {
    table.add("PutRows", dtype, {.name = "put_rows", .run = scatter_rows<T, Put>});
  }
  if constexpr (!kIsStoredOnly<T>) {
    table.add("AddRows", dtype, {.name = "add_rows", .run = scatter_rows<T, Add>});
    table.add("MultiplyRows", dtype, {.name = "multiply_rows", .run = scatter_rows<T, Multiply>});
    table.add("MaxRows", dtype, {.name = "max_rows", .run = scatter_rows<T, Larger>});
    table.add("MinRows", dtype, {.name = "min_rows", .run = scatter_rows<T, Smaller>});
  }
  if constexpr (std::is_floating_point_v<T>) {
    table.add("MultiplyRowsGrad", dtype,
              {.name = "multiply_rows_grad",
               .prepare = prepare_product_grad,
               .run = multiply_rows_grad<T>});
  }
}

// Elements of other types are only moved.
void put_rows(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype,
             [&](auto* type) { scatter_rows<Pointee<decltype(type)>, Put>(run); });
}

constexpr Kernel kAddRows{.name = "add_rows", .run = scatter_rows<std::int64_t, Add>};
constexpr Kernel kMultiplyRows{.name = "multiply_rows",
                               .run = scatter_rows<std::int64_t, Multiply>};

template <class I>
void add_index_kernels(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<I>;
  table.add("ElementIndex", dtype,
            {.name = "element_index", .prepare = prepare_element_index, .run = element_index<I>});
  table.add("SliceIndex", dtype, {.name = "slice_index", .run = slice_index<I>});
}

}  // namespace

void add_scatter(KernelTable& table) {
  add_index_kernels<std::int32_t>(table);
  add_index_kernels<std::int64_t>(table);
  for (DType dtype : kAllDTypes) {
    if (!is_float(dtype)) table.add("PutRows", dtype, {.name = "put_rows", .run = put_rows});
  }
  add_rows<float>(table);
  add_rows<double>(table);
  add_rows<std::int32_t>(table);
  add_rows<std::int64_t>(table);
  add_rows<std::uint64_t>(table);
  add_upcast_integers<kAddRows>(table, "AddRows", kAddRows.name);
  add_upcast_integers<kMultiplyRows>(table, "MultiplyRows", kMultiplyRows.name);
  add_rows<BFloat16>(table);
  add_rows<Float16>(table);
}

}  // namespace trainscope::cpu
