// Lookup of slices by index, and its gradient.
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/api/element_bits.h"
#include "kernels/api/kernel.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

// A tensor [outer, size, inner] whose middle axis the indices are about, and [outer, count, inner]
// with one place for each index.
struct Layout {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;
  std::int64_t count = 0;
};

Layout layout_of(const Shape& data, int axis, std::int64_t index_count) {
  Layout layout{.size = data[axis], .count = index_count};
  for (int a = 0; a < axis; ++a) layout.outer *= data[a];
  for (int a = axis + 1; a < data.rank; ++a) layout.inner *= data[a];
  return layout;
}

// The place an index means: negative ones count from the end; -1 when it is outside.
template <class I>
std::int64_t resolved(I index, std::int64_t size) {
  const std::int64_t place = index < 0 ? std::int64_t{index} + size : std::int64_t{index};
  return place >= 0 && place < size ? place : -1;
}

// What a lookup outside gives: NaN where the type has it, else 0, and the call has failed.
double outside_value(DType dtype) {
  return is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
}

// Apart, so that the loop stays small.
[[gnu::noinline]] void report_outside(const RunArgs& run, std::int64_t index, std::int64_t size) {
  run.call.fail(
      DeviceStatus::Code::kBadInput,
      "the index " + std::to_string(index) + " is outside of an axis of " + std::to_string(size));
}

template <class T, class I>
void gather(const RunArgs& run, T outside) {
  const bool is_silent = !is_float(run.inputs[0].type.dtype);
  const Layout shape = layout_of(run.inputs[0].shape(), std::get<AxisParams>(run.params).axis,
                                 run.inputs[1].elements());
  const T* x = run.inputs[0].as<const T>();        // [outer, size, inner]
  const I* indices = run.inputs[1].as<const I>();  // [count]
  T* y = run.outputs[0].as<T>();                   // [outer, count, inner]
  if (run.outputs[0].elements() == 0) return;
  parallel_for(run.threads, shape.outer * shape.count, row_grain(shape.inner),
               [=, &run](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const I index = indices[row % shape.count];
                   const std::int64_t place = resolved(index, shape.size);
                   const std::int64_t from = row / shape.count * shape.size + place;
                   T* target = y + row * shape.inner;
                   if (place < 0) {
                     if (is_silent) report_outside(run, index, shape.size);
                     std::fill_n(target, shape.inner, outside);
                   } else {
                     std::copy_n(x + from * shape.inner, shape.inner, target);
                   }
                 }
               });
}

void run_gather(const RunArgs& run) {
  const DType dtype = run.inputs[0].type.dtype;
  with_width(dtype, [&](auto* type) {
    using T = Pointee<decltype(type)>;
    const T outside = element_bits<T>(dtype, outside_value(dtype));
    if (run.inputs[1].type.dtype == DType::kI32) {
      gather<T, std::int32_t>(run, outside);
    } else {
      gather<T, std::int64_t>(run, outside);
    }
  });
}

// A box of the result [outer, size, inner] that one thread owns: it adds up all that belongs there,
// in the order of the indices, so that the sums do not depend on the division of the work.
struct Owned {
  std::int64_t outer_begin, outer_end;
  std::int64_t row_begin, row_end;
  std::int64_t column_begin, column_end;
};

template <class T, class I>
struct Scatter {
  Layout shape;
  const T* dy;
  const I* indices;
  const T* sum;  // what is added to: null means zeros, dx that it is there already
  T* dx;

  void run(const Owned& owned) const {
    for (std::int64_t o = owned.outer_begin; o < owned.outer_end; ++o) {
      if (sum != dx) start(owned, o);
      for (std::int64_t n = 0; n < shape.count; ++n) {
        const std::int64_t row = resolved(indices[n], shape.size);
        if (row < owned.row_begin || row >= owned.row_end) continue;
        const T* from = dy + (o * shape.count + n) * shape.inner;
        T* to = dx + (o * shape.size + row) * shape.inner;
#pragma omp simd
        for (std::int64_t c = owned.column_begin; c < owned.column_end; ++c) to[c] += from[c];
      }
    }
  }

  void start(const Owned& owned, std::int64_t o) const {
    const std::int64_t first = o * shape.size * shape.inner;
    if (owned.column_end - owned.column_begin == shape.inner) {
      start(first + owned.row_begin * shape.inner, first + owned.row_end * shape.inner);
      return;
    }
    for (std::int64_t row = owned.row_begin; row < owned.row_end; ++row) {
      const std::int64_t line = first + row * shape.inner;
      start(line + owned.column_begin, line + owned.column_end);
    }
  }

  void start(std::int64_t begin, std::int64_t end) const {
    if (sum == nullptr) {
      std::fill(dx + begin, dx + end, T{});
    } else {
      std::copy(sum + begin, sum + end, dx + begin);
    }
  }
};

template <class T, class I>
void gather_grad(const RunArgs& run) {
  const bool has_sum = run.inputs.size() > 2 && run.inputs[2].present;
  const Scatter<T, I> scatter{
      .shape = layout_of(run.outputs[0].shape(), std::get<AxisParams>(run.params).axis,
                         run.inputs[1].elements()),
      .dy = run.inputs[0].as<const T>(),
      .indices = run.inputs[1].as<const I>(),
      .sum = has_sum ? run.inputs[2].as<const T>() : nullptr,
      .dx = run.outputs[0].as<T>()};
  const Layout& s = scatter.shape;
  if (run.outputs[0].elements() == 0) return;
  constexpr std::int64_t kMinColumns = 32;  // two cache lines of floats for each thread
  const std::int64_t work = (s.size + s.count) * s.inner;
  if (s.outer >= 2 * run.threads) {
    parallel_for(run.threads, s.outer, row_grain(work), [&](std::int64_t begin, std::int64_t end) {
      scatter.run({begin, end, 0, s.size, 0, s.inner});
    });
  } else if (s.inner >= kMinColumns * run.threads) {
    const std::int64_t grain = std::max(kMinColumns, row_grain(s.outer * (s.size + s.count)));
    parallel_for(run.threads, s.inner, grain, [&](std::int64_t begin, std::int64_t end) {
      scatter.run({0, s.outer, 0, s.size, begin, end});
    });
  } else {
    const std::int64_t grain = row_grain(s.outer * work / s.size);
    parallel_for(run.threads, s.size, grain, [&](std::int64_t begin, std::int64_t end) {
      scatter.run({0, s.outer, begin, end, 0, s.inner});
    });
  }
}

template <class T>
void run_gather_grad(const RunArgs& run) {
  if (run.inputs[1].type.dtype == DType::kI32) {
    gather_grad<T, std::int32_t>(run);
  } else {
    gather_grad<T, std::int64_t>(run);
  }
}

// --- SumRowsById(dy [..., inner], ids [...], size []) --------------------------------------------

// A row of dy and the row of the sums that it goes to. In this order the rows of one sum lie
// together, as the ids have them.
struct NamedRow {
  std::int64_t id = 0;
  std::int64_t row = 0;
  auto operator<=>(const NamedRow&) const = default;
};

// Workspace: the named rows, then where each sum's begin among them, and their end.
struct SumRows {
  std::span<NamedRow> named;       // [ids]
  std::span<std::int64_t> begins;  // [ids + 1] at most
  std::int64_t count = 0;          // of sums

  SumRows(std::int64_t ids, void* workspace)
      : named(static_cast<NamedRow*>(workspace), static_cast<std::size_t>(ids)),
        begins(reinterpret_cast<std::int64_t*>(named.data() + ids),
               static_cast<std::size_t>(ids) + 1) {}

  static std::size_t bytes(std::int64_t ids) {
    return static_cast<std::size_t>(ids) * sizeof(NamedRow) +
           static_cast<std::size_t>(ids + 1) * sizeof(std::int64_t);
  }

  template <class I>
  void find(const I* ids, std::int64_t size) {
    std::size_t inside = 0;
    for (std::size_t n = 0; n < named.size(); ++n) {
      const std::int64_t id = resolved(ids[n], size);
      if (id >= 0) named[inside++] = {.id = id, .row = static_cast<std::int64_t>(n)};
    }
    std::sort(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(inside));
    for (std::size_t n = 0; n < inside; ++n) {
      if (n > 0 && named[n].id == named[n - 1].id) continue;
      begins[static_cast<std::size_t>(count++)] = static_cast<std::int64_t>(n);
    }
    begins[static_cast<std::size_t>(count)] = static_cast<std::int64_t>(inside);
  }

  std::span<const NamedRow> rows_of(std::int64_t sum) const {
    const auto begin = static_cast<std::size_t>(begins[static_cast<std::size_t>(sum)]);
    const auto end = static_cast<std::size_t>(begins[static_cast<std::size_t>(sum) + 1]);
    return named.subspan(begin, end - begin);
  }
};

Prepared prepare_sum_rows(const PrepareArgs& args) {
  return {.workspace_bytes = SumRows::bytes(args.inputs[1].elements()), .state = nullptr};
}

template <class T>
T* written(const RunArgs& run, std::size_t output) {
  const bool wanted = output < run.outputs.size() && run.outputs[output].present;
  return wanted ? run.outputs[output].as<T>() : nullptr;
}

// dy -> sums [most, inner], ids [most], count []; 0 from `count` on.
template <class T, class I>
void sum_rows_by_id(const RunArgs& run) {
  const std::int64_t size = *run.inputs[2].as<const std::int64_t>();
  const std::int64_t most = std::min(size, run.inputs[1].elements());
  SumRows sums(run.inputs[1].elements(), run.workspace);
  sums.find(run.inputs[1].as<const I>(), size);
  if (auto* count = written<std::int64_t>(run, 2)) *count = sums.count;
  if (auto* ids = written<std::int64_t>(run, 1)) {
    for (std::int64_t n = 0; n < most; ++n) {
      ids[n] = n < sums.count ? sums.rows_of(n).front().id : 0;
    }
  }
  T* y = written<T>(run, 0);
  if (y == nullptr || run.outputs[0].elements() == 0) return;
  const std::int64_t inner = run.outputs[0].elements() / most;
  const T* dy = run.inputs[0].as<const T>();
  parallel_for(run.threads, most, row_grain(2 * inner), [&](std::int64_t begin, std::int64_t end) {
    std::fill(y + begin * inner, y + end * inner, T{});
    for (std::int64_t n = begin; n < std::min(end, sums.count); ++n) {
      for (const NamedRow& named : sums.rows_of(n)) {
        const T* from = dy + named.row * inner;
        T* to = y + n * inner;
#pragma omp simd
        for (std::int64_t c = 0; c < inner; ++c) to[c] += from[c];
      }
    }
  });
}

template <class T>
void run_sum_rows_by_id(const RunArgs& run) {
  if (run.inputs[1].type.dtype == DType::kI32) {
    sum_rows_by_id<T, std::int32_t>(run);
  } else {
    sum_rows_by_id<T, std::int64_t>(run);
  }
}

constexpr Kernel kSumRowsById{
    .name = "sum_rows_by_id", .prepare = prepare_sum_rows, .run = run_sum_rows_by_id<float>};

constexpr Kernel kGatherGrad{.name = "gather_grad", .run = run_gather_grad<float>};

}  // namespace

void add_index(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("Gather", dtype, {.name = "gather", .run = run_gather});
  }
  table.add("GatherGrad", DType::kF32, kGatherGrad);
  add_upcast<kGatherGrad>(table, "GatherGrad", "gather_grad.upcast");
  table.add("GatherGrad", DType::kF64, {.name = "gather_grad", .run = run_gather_grad<double>});
  table.add("SumRowsById", DType::kF32, kSumRowsById);
  add_upcast<kSumRowsById>(table, "SumRowsById", "sum_rows_by_id.upcast");
  table.add(
      "SumRowsById", DType::kF64,
      {.name = "sum_rows_by_id", .prepare = prepare_sum_rows, .run = run_sum_rows_by_id<double>});
}

}  // namespace trainscope::cpu
