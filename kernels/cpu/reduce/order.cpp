// Places of extreme elements along an axis, one line of the tensor after the other.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/reduce/axis_layout.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

// Whether a goes before b. A NaN is larger than any number.
struct LargestFirst {
  template <class T>
  static bool before(T a, T b) {
    return a > b || (is_nan(a) && !is_nan(b));
  }
};
struct SmallestFirst {
  template <class T>
  static bool before(T a, T b) {
    return a < b || (is_nan(b) && !is_nan(a));
  }
};
// For ArgMin, which like ArgMax answers with the place of a NaN.
struct SmallestOrNaNFirst {
  template <class T>
  static bool before(T a, T b) {
    return a < b || (is_nan(a) && !is_nan(b));
  }
};

// --- ArgMax, ArgMin ------------------------------------------------------------------------------
template <class T, class Order>
void run_arg(const RunArgs& run) {
  const auto& params = std::get<ArgParams>(run.params);
  const AxisLayout shape = axis_layout(run.inputs[0].shape(), params.axis);
  const T* x = run.inputs[0].as<const T>();             // [outer, size, inner]
  std::int64_t* y = run.outputs[0].as<std::int64_t>();  // [outer, inner]
  const bool last = params.last;
  if (run.outputs[0].elements() == 0) return;
  parallel_for(
      run.threads, shape.lines(), row_grain(shape.size), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t line = begin; line < end; ++line) {
          const T* elements = x + shape.begin_of(line);
          T best = elements[0];
          std::int64_t place = 0;
          for (std::int64_t i = 1; i < shape.size; ++i) {
            const T next = elements[i * shape.inner];
            const bool better = last ? !Order::before(best, next) : Order::before(next, best);
            best = better ? next : best;
            place = better ? i : place;
          }
          y[line] = place;
        }
      });
}

// --- TopK ----------------------------------------------------------------------------------------
// The lines are divided over fixed chunks, each of which has room for the places of one line.
std::int64_t chunk_count(int threads, std::int64_t lines) {
  return std::clamp<std::int64_t>(lines, 1, std::max(1, threads));
}

Prepared prepare_top_k(const PrepareArgs& args) {
  const AxisLayout shape =
      axis_layout(args.inputs[0].shape(), std::get<TopKParams>(args.params).axis);
  const std::int64_t places = chunk_count(args.threads, shape.lines()) * shape.size;
  return {.workspace_bytes = static_cast<std::size_t>(places) * sizeof(std::int64_t),
          .state = nullptr};
}

// Where the results of a line go; null when nobody wants them.
template <class T>
struct TopKLine {
  const T* elements = nullptr;
  std::int64_t stride = 1;  // of elements, values and indices alike
  T* values = nullptr;
  std::int64_t* indices = nullptr;
};

template <class T, class Order>
void top_k_of_line(const TopKLine<T>& line, std::span<std::int64_t> places, std::int64_t count) {
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const auto before = [&line](std::int64_t a, std::int64_t b) {
    const T x = line.elements[a * line.stride];
    const T y = line.elements[b * line.stride];
    if (Order::before(x, y)) return true;
    return !Order::before(y, x) && a < b;
  };
  std::partial_sort(places.begin(), places.begin() + count, places.end(), before);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = places[static_cast<std::size_t>(i)];
    if (line.values != nullptr) line.values[i * line.stride] = line.elements[place * line.stride];
    if (line.indices != nullptr) line.indices[i * line.stride] = place;
  }
}

template <class T, class Order>
void top_k(const RunArgs& run, const TopKParams& params) {
  const AxisLayout from = axis_layout(run.inputs[0].shape(), params.axis);
  AxisLayout to = from;
  to.size = params.count;
  const bool two = run.outputs.size() > 1 && run.outputs[1].present;
  const T* x = run.inputs[0].as<const T>();  // [outer, size, inner]
  T* values = run.outputs[0].present ? run.outputs[0].as<T>() : nullptr;
  std::int64_t* indices = two ? run.outputs[1].as<std::int64_t>() : nullptr;
  auto* workspace = static_cast<std::int64_t*>(run.workspace);
  if (to.lines() * to.size == 0) return;
  const std::int64_t chunks = chunk_count(run.threads, from.lines());
  parallel_for(run.threads, chunks, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::span<std::int64_t> places(workspace + chunk * from.size,
                                           static_cast<std::size_t>(from.size));
      const std::int64_t last = from.lines() * (chunk + 1) / chunks;
      for (std::int64_t line = from.lines() * chunk / chunks; line < last; ++line) {
        const std::int64_t at = to.begin_of(line);
        top_k_of_line<T, Order>({.elements = x + from.begin_of(line),
                                 .stride = from.inner,
                                 .values = values == nullptr ? nullptr : values + at,
                                 .indices = indices == nullptr ? nullptr : indices + at},
                                places, params.count);
      }
    }
  });
}

template <class T>
void run_top_k(const RunArgs& run) {
  const auto& params = std::get<TopKParams>(run.params);
  if (params.largest) return top_k<T, LargestFirst>(run, params);
  top_k<T, SmallestFirst>(run, params);
}

// Inputs dy and the places of its elements along the axis, which differ within a line.
template <class T>
void run_top_k_grad(const RunArgs& run) {
  const int axis = std::get<AxisParams>(run.params).axis;
  const AxisLayout from = axis_layout(run.inputs[0].shape(), axis);
  const AxisLayout to = axis_layout(run.outputs[0].shape(), axis);
  const T* dy = run.inputs[0].as<const T>();                             // [outer, k, inner]
  const std::int64_t* indices = run.inputs[1].as<const std::int64_t>();  // [outer, k, inner]
  T* dx = run.outputs[0].as<T>();                                        // [outer, size, inner]
  if (run.outputs[0].elements() == 0) return;
  parallel_for(run.threads, to.lines(), row_grain(to.size),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t line = begin; line < end; ++line) {
                   T* target = dx + to.begin_of(line);
                   for (std::int64_t i = 0; i < to.size; ++i) target[i * to.inner] = T(0);
                   const std::int64_t at = from.begin_of(line);
                   for (std::int64_t i = 0; i < from.size; ++i) {
                     const std::int64_t place = indices[at + i * from.inner];
                     if (place < 0 || place >= to.size) continue;
                     target[place * to.inner] = dy[at + i * from.inner];
                   }
                 }
               });
}

template <class T>
void add_order_for(KernelTable& table) {
  table.add("ArgMax", kDTypeOf<T>, {.name = "arg_max", .run = run_arg<T, LargestFirst>});
  table.add("ArgMin", kDTypeOf<T>, {.name = "arg_min", .run = run_arg<T, SmallestOrNaNFirst>});
  table.add("TopK", kDTypeOf<T>, {.name = "top_k", .prepare = prepare_top_k, .run = run_top_k<T>});
}

constexpr Kernel kArgMax{.name = "arg_max", .run = run_arg<std::int64_t, LargestFirst>};
constexpr Kernel kArgMin{.name = "arg_min", .run = run_arg<std::int64_t, SmallestOrNaNFirst>};
constexpr Kernel kTopK{.name = "top_k", .prepare = prepare_top_k, .run = run_top_k<std::int64_t>};

}  // namespace

void add_order(KernelTable& table) {
  add_order_for<float>(table);
  add_order_for<double>(table);
  add_order_for<std::int32_t>(table);
  add_order_for<std::int64_t>(table);
  add_order_for<std::uint64_t>(table);
  add_upcast_integers<kArgMax>(table, "ArgMax", kArgMax.name);
  add_upcast_integers<kArgMin>(table, "ArgMin", kArgMin.name);
  add_upcast_integers<kTopK>(table, "TopK", kTopK.name);
  table.add("TopKGrad", DType::kF32, {.name = "top_k_grad", .run = run_top_k_grad<float>});
  table.add("TopKGrad", DType::kF64, {.name = "top_k_grad", .run = run_top_k_grad<double>});
}

}  // namespace trainscope::cpu
