// Weighted sums of few elements along one axis, and the gradient of them.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

// x [outer, size, inner], y [outer, outputs, inner], index and weight [outputs, taps]. The op's
// shape rule has checked the index.
template <class T>
struct Layout {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;
  std::int64_t outputs = 0;
  std::int64_t taps = 0;
  const std::int64_t* index;
  const T* weight;
};

template <class T>
Layout<T> layout_of(const RunArgs& run, const Shape& x) {
  const int axis = std::get<AxisParams>(run.params).axis;
  Layout<T> layout{.size = x[axis],
                   .outputs = run.inputs[1].shape()[0],
                   .taps = run.inputs[1].shape()[1],
                   .index = run.inputs[1].as<const std::int64_t>(),
                   .weight = run.inputs[2].as<const T>()};
  for (int a = 0; a < axis; ++a) layout.outer *= x[a];
  for (int a = axis + 1; a < x.rank; ++a) layout.inner *= x[a];
  return layout;
}

// One row of y from the plane [size, inner] of x.
template <class T>
void sum_row(const Layout<T>& s, const T* x, std::int64_t o, T offset, T* y) {
  std::fill_n(y, s.inner, offset);
  for (std::int64_t t = o * s.taps; t < (o + 1) * s.taps; ++t) {
    const T* from = x + s.index[t] * s.inner;
    const T weight = s.weight[t];
#pragma omp simd
    for (std::int64_t c = 0; c < s.inner; ++c) y[c] += weight * from[c];
  }
}

// A plane of single elements, of which a row each would be a call.
template <class T>
void sum_line(const Layout<T>& s, const T* x, const T* offset, T* y) {
  const std::int64_t* index = s.index;
  const T* weight = s.weight;
  if (s.taps == 1) {
    for (std::int64_t o = 0; o < s.outputs; ++o) y[o] = weight[o] * x[index[o]];
  } else if (s.taps == 2) {
    for (std::int64_t o = 0; o < s.outputs; ++o) {
      y[o] = weight[2 * o] * x[index[2 * o]] + weight[2 * o + 1] * x[index[2 * o + 1]];
    }
  } else {
    for (std::int64_t o = 0; o < s.outputs; ++o) {
      T sum = 0;
      for (std::int64_t t = 0; t < s.taps; ++t, ++index, ++weight) sum += *weight * x[*index];
      y[o] = sum;
    }
  }
  if (offset == nullptr) return;
  for (std::int64_t o = 0; o < s.outputs; ++o) y[o] += offset[o];
}

template <class T>
void interpolate(const RunArgs& run) {
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  const Layout<T> s = layout_of<T>(run, run.inputs[0].shape());
  const bool has_offset = run.inputs.size() > 3 && run.inputs[3].present;
  const T* offset = has_offset ? run.inputs[3].as<const T>() : nullptr;
  if (run.outputs[0].elements() == 0) return;
  const std::int64_t row_work = s.inner * std::max<std::int64_t>(1, s.taps);
  if (s.inner == 1) {
    parallel_for(run.threads, s.outer, row_grain(s.outputs * row_work),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t plane = begin; plane < end; ++plane) {
                     sum_line(s, x + plane * s.size, offset, y + plane * s.outputs);
                   }
                 });
    return;
  }
  parallel_for(run.threads, s.outer * s.outputs, row_grain(row_work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const std::int64_t o = row % s.outputs;
                   const T* plane = x + row / s.outputs * s.size * s.inner;
                   const T added = offset == nullptr ? T{0} : offset[o];
                   sum_row(s, plane, o, added, y + row * s.inner);
                 }
               });
}

// Planes [outer_begin, outer_end) of dx, in them the columns [begin, end).
struct Chunk {
  std::int64_t outer_begin, outer_end;
  std::int64_t begin, end;
};

template <class T>
void scatter_line(const Layout<T>& s, const T* dy, T* dx) {
  const std::int64_t* index = s.index;
  const T* weight = s.weight;
  for (std::int64_t o = 0; o < s.outputs; ++o) {
    for (std::int64_t t = 0; t < s.taps; ++t) dx[*index++] += *weight++ * dy[o];
  }
}

template <class T>
void scatter_chunk(const Layout<T>& s, const T* dy, T* dx, const Chunk& chunk) {
  for (std::int64_t plane = chunk.outer_begin; plane < chunk.outer_end; ++plane) {
    T* to = dx + plane * s.size * s.inner;
    const T* from = dy + plane * s.outputs * s.inner;
    for (std::int64_t i = 0; i < s.size; ++i) {
      std::fill(to + i * s.inner + chunk.begin, to + i * s.inner + chunk.end, T{0});
    }
    if (s.inner == 1) {
      scatter_line(s, from, to);
      continue;
    }
    for (std::int64_t t = 0; t < s.outputs * s.taps; ++t) {
      const T weight = s.weight[t];
      T* target = to + s.index[t] * s.inner;
      const T* source = from + t / s.taps * s.inner;
#pragma omp simd
      for (std::int64_t c = chunk.begin; c < chunk.end; ++c) target[c] += weight * source[c];
    }
  }
}

// What one thread writes is added up in the order of the taps: the division does not matter.
template <class T>
void interpolate_grad(const RunArgs& run) {
  const T* dy = run.inputs[0].as<const T>();
  T* dx = run.outputs[0].as<T>();
  const Layout<T> s = layout_of<T>(run, run.outputs[0].shape());
  if (run.outputs[0].elements() == 0) return;
  constexpr std::int64_t kMinColumns = 32;
  const std::int64_t work = s.size + s.outputs * s.taps;
  if (s.outer >= run.threads || s.inner < kMinColumns * run.threads) {
    parallel_for(run.threads, s.outer, row_grain(work * s.inner),
                 [&](std::int64_t begin, std::int64_t end) {
                   scatter_chunk(s, dy, dx, Chunk{begin, end, 0, s.inner});
                 });
  } else {
    parallel_for(run.threads, s.inner, std::max(kMinColumns, row_grain(work * s.outer)),
                 [&](std::int64_t begin, std::int64_t end) {
                   scatter_chunk(s, dy, dx, Chunk{0, s.outer, begin, end});
                 });
  }
}

template <class T>
constexpr Kernel kInterpolate{.name = "interpolate", .run = interpolate<T>};
template <class T>
constexpr Kernel kInterpolateGrad{.name = "interpolate_grad", .run = interpolate_grad<T>};

template <class T>
void add_for(KernelTable& table) {
  table.add("Interpolate", kDTypeOf<T>, kInterpolate<T>);
  table.add("InterpolateGrad", kDTypeOf<T>, kInterpolateGrad<T>);
}

}  // namespace

void add_interpolate(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
  add_upcast<kInterpolate<float>>(table, "Interpolate", "interpolate.upcast");
  add_upcast<kInterpolateGrad<float>>(table, "InterpolateGrad", "interpolate_grad.upcast");
}

}  // namespace trainscope::cpu
