// MaxPool, AveragePool and their gradients; parallel over planes [N * C].
#include "kernels/cpu/pool/pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

// x [planes, in...], y [planes, out...]
struct Geometry {
  Window window;
  std::int64_t planes;
  bool count_include_pad;
  std::array<Range, kMaxSpatialRank> whole;  // windows inside the input, per axis

  // Elements of window `o` along `axis` that lie inside the input.
  Range taps(std::size_t axis, std::int64_t o) const {
    const bool inside = o >= whole[axis].begin && o < whole[axis].end;
    return inside ? Range{0, window.kernel[axis]} : taps_inside(window, axis, o);
  }
  // The windows whose column `kx` lies inside the input.
  Range inside(std::int64_t kx) const {
    const Range x = windows_inside(window, 2, kx);
    return x.empty() ? Range{} : x;
  }
  // Position in the input of element `k` of window `o`.
  std::int64_t position(std::size_t axis, std::int64_t o, std::int64_t k) const {
    return o * window.stride[axis] - window.pad[axis] + k * window.dilation[axis];
  }
};

Range whole_windows(const Window& window, std::size_t axis) {
  const Range first = windows_inside(window, axis, 0);
  const Range last = windows_inside(window, axis, window.kernel[axis] - 1);
  return {.begin = first.begin, .end = std::min(first.end, last.end)};
}

Geometry geometry(const RunArgs& args, const Shape& x, const Shape& y) {
  const auto& params = std::get<PoolParams>(args.params);
  const Window window = window_of(params.window, x, y);
  return {.window = window,
          .planes = x[0] * x[1],
          .count_include_pad = params.count_include_pad,
          .whole = {whole_windows(window, 0), whole_windows(window, 1), whole_windows(window, 2)}};
}

template <class F>
void for_each_plane(const RunArgs& args, const Geometry& g, F&& f) {
  const std::int64_t work = g.window.out_elements() * g.window.taps() + g.window.in_elements();
  parallel_for(args.threads, g.planes, row_grain(work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) f(plane);
  });
}

// --- Forward -------------------------------------------------------------------------------------

// One input row per plane, in which the rows of a window are combined first: planes share nothing.
Prepared prepare_rows(const PrepareArgs& args) {
  const Shape& x = args.inputs[0].shape();
  const auto elements = static_cast<std::size_t>(x[0] * x[1] * x[x.rank - 1]);
  return {.workspace_bytes = elements * size_of(args.inputs[0].type.dtype), .state = nullptr};
}

// buffer[in_w] = the input rows under output row (z, y) combined element by element.
template <typename T, class Combination>
void combine_rows(const Geometry& g, std::int64_t z, std::int64_t y, const T* in, T* buffer) {
  const Window& w = g.window;
  const Range z_taps = g.taps(0, z);
  const Range y_taps = g.taps(1, y);
  std::fill_n(buffer, w.in[2], Combination::kInitial);
  for (std::int64_t kz = z_taps.begin; kz < z_taps.end; ++kz) {
    for (std::int64_t ky = y_taps.begin; ky < y_taps.end; ++ky) {
      const T* row = in + (g.position(0, z, kz) * w.in[1] + g.position(1, y, ky)) * w.in[2];
      for (std::int64_t i = 0; i < w.in[2]; ++i)
        buffer[i] = Combination::combine(buffer[i], row[i]);
    }
  }
}

// out[out_w] = the elements of the combined row under each window, combined.
template <typename T, class Combination>
void combine_columns(const Geometry& g, const T* buffer, T* out) {
  const Window& w = g.window;
  std::fill_n(out, w.out[2], Combination::kInitial);
  for (std::int64_t kx = 0; kx < w.kernel[2]; ++kx) {
    const Range x = g.inside(kx);
    const T* from = buffer + g.position(2, x.begin, kx);
    T* to = out + x.begin;
    const std::int64_t n = x.end - x.begin;
    if (w.stride[2] == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = Combination::combine(to[i], from[i]);
    } else if (w.stride[2] == 2) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = Combination::combine(to[i], from[2 * i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        to[i] = Combination::combine(to[i], from[i * w.stride[2]]);
      }
    }
  }
}

// `finish` gets each output row (z, y) after its windows were combined.
template <typename T, class Combination, class Finish>
void run_forward(const RunArgs& args, const Geometry& g, Finish finish) {
  const auto* x = args.inputs[0].as<const T>();
  auto* y = args.outputs[0].as<T>();
  auto* buffers = static_cast<T*>(args.workspace);
  const Spatial& size = g.window.out;
  for_each_plane(args, g, [&](std::int64_t plane) {
    const T* in = x + plane * g.window.in_elements();
    T* buffer = buffers + plane * g.window.in[2];
    for (std::int64_t row = 0; row < size[0] * size[1]; ++row) {
      T* out = y + plane * g.window.out_elements() + row * size[2];
      combine_rows<T, Combination>(g, row / size[1], row % size[1], in, buffer);
      combine_columns<T, Combination>(g, buffer, out);
      finish(row / size[1], row % size[1], out);
    }
  });
}

// --- Average -------------------------------------------------------------------------------------

// By how many elements window `o` divides along `axis`.
std::int64_t counted(const Geometry& g, std::size_t axis, std::int64_t o) {
  const Window& w = g.window;
  const Range taps = g.taps(axis, o);
  // A dilated window may straddle the whole input; its average is 0.
  if (!g.count_include_pad) return std::max<std::int64_t>(1, taps.end - taps.begin);
  // With ceil_mode the last window may reach beyond the padding: that part never counts.
  const std::int64_t last = w.in[axis] + w.pad_end[axis] - 1 - g.position(axis, o, 0);
  return std::min(w.kernel[axis], last / w.dilation[axis] + 1);
}

// to[x] = from[x] / (elements counted in window x) of an output row whose windows count `rows`
// rows.
template <typename T>
void divide_by_counts(const Geometry& g, std::int64_t rows, const T* from, T* to) {
  const auto divide_each = [&](Range part) {
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      to[i] = from[i] / static_cast<T>(rows * counted(g, 2, i));
    }
  };
  const Range whole = g.whole[2];
  if (whole.empty()) return divide_each({0, g.window.out[2]});
  divide_each({0, whole.begin});
  const T count = static_cast<T>(rows * g.window.kernel[2]);
  for (std::int64_t i = whole.begin; i < whole.end; ++i) to[i] = from[i] / count;
  divide_each({whole.end, g.window.out[2]});
}

template <typename T>
struct Sum {
  static constexpr T kInitial = 0;
  static T combine(T a, T b) { return a + b; }
};

template <typename T>
void run_average_pool(const RunArgs& args) {
  const Geometry g = geometry(args, args.inputs[0].shape(), args.outputs[0].shape());
  run_forward<T, Sum<T>>(args, g, [&](std::int64_t z, std::int64_t y, T* out) {
    divide_by_counts(g, counted(g, 0, z) * counted(g, 1, y), out, out);
  });
}

Prepared prepare_average_pool_grad(const PrepareArgs& args) {
  const Shape& dx = args.outputs[0].shape();
  const Shape& dy = args.inputs[0].shape();
  const std::int64_t row = dx[dx.rank - 1] + dy[dy.rank - 1];
  const auto elements = static_cast<std::size_t>(dx[0] * dx[1] * row);
  return {.workspace_bytes = elements * size_of(args.inputs[0].type.dtype), .state = nullptr};
}

// Adds the gradient of output row (z, y) to the input plane. `share` holds it divided by the
// counts, `buffer` [in_w] is for its sum over the columns of the windows.
template <typename T>
void spread_row(const Geometry& g, std::int64_t z, std::int64_t y, const T* share, T* buffer,
                T* in) {
  const Window& w = g.window;
  std::fill_n(buffer, w.in[2], T{0});
  for (std::int64_t kx = 0; kx < w.kernel[2]; ++kx) {
    const Range x = g.inside(kx);
    T* to = buffer + g.position(2, x.begin, kx);
    for (std::int64_t i = 0; i < x.end - x.begin; ++i) to[i * w.stride[2]] += share[x.begin + i];
  }
  const Range z_taps = g.taps(0, z);
  const Range y_taps = g.taps(1, y);
  for (std::int64_t kz = z_taps.begin; kz < z_taps.end; ++kz) {
    for (std::int64_t ky = y_taps.begin; ky < y_taps.end; ++ky) {
      T* row = in + (g.position(0, z, kz) * w.in[1] + g.position(1, y, ky)) * w.in[2];
      for (std::int64_t i = 0; i < w.in[2]; ++i) row[i] += buffer[i];
    }
  }
}

template <typename T>
void run_average_pool_grad(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  auto* buffers = static_cast<T*>(args.workspace);
  const Geometry g = geometry(args, args.outputs[0].shape(), args.inputs[0].shape());
  const Spatial& size = g.window.out;

  for_each_plane(args, g, [&](std::int64_t plane) {
    T* in = dx + plane * g.window.in_elements();
    T* share = buffers + plane * (size[2] + g.window.in[2]);
    std::fill_n(in, g.window.in_elements(), T{0});
    for (std::int64_t row = 0; row < size[0] * size[1]; ++row) {
      const std::int64_t z = row / size[1];
      const std::int64_t y = row % size[1];
      const T* out = dy + plane * g.window.out_elements() + row * size[2];
      divide_by_counts(g, counted(g, 0, z) * counted(g, 1, y), out, share);
      spread_row(g, z, y, share, share + size[2], in);
    }
  });
}

// --- Maximum -------------------------------------------------------------------------------------

// Whether `candidate` takes the place of `best`: larger, or a NaN.
template <typename T>
bool beats(T candidate, T best) {
  return candidate > best || candidate != candidate;
}

template <typename T>
struct Maximum {
  static constexpr T kInitial = -std::numeric_limits<T>::infinity();
  static T combine(T a, T b) { return beats(b, a) ? b : a; }
};

// max_pool_places.cpp tells the places too.
Support supports_max_pool(const PrepareArgs& args) {
  return supported_if(args.outputs.size() == 1, "places are asked for");
}

template <typename T>
void run_max_pool(const RunArgs& args) {
  const Geometry g = geometry(args, args.inputs[0].shape(), args.outputs[0].shape());
  run_forward<T, Maximum<T>>(args, g, [](std::int64_t, std::int64_t, T*) {});
}

template <typename T>
struct Best {
  std::int64_t at;  // offset in the input plane
  T value;
};

// The better of `best` and `count` elements from `begin` on.
template <typename T>
Best<T> best_of_row(const T* in, std::int64_t begin, std::int64_t step, std::int64_t count,
                    Best<T> best) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = begin + i * step;
    const bool better = beats(in[at], best.value);
    best.at = better ? at : best.at;
    best.value = better ? in[at] : best.value;
  }
  return best;
}

// Adds the gradients of output row (z, y) to the first maximum of each window.
template <typename T>
void spread_to_maxima(const Geometry& g, std::int64_t z, std::int64_t y, const T* in, const T* dy,
                      T* dx) {
  const Window& w = g.window;
  const Range z_taps = g.taps(0, z);
  const Range y_taps = g.taps(1, y);
  if (z_taps.empty() || y_taps.empty()) return;
  const auto row = [&](std::int64_t kz, std::int64_t ky) {
    return (g.position(0, z, kz) * w.in[1] + g.position(1, y, ky)) * w.in[2];
  };
  for (std::int64_t x = 0; x < w.out[2]; ++x) {
    const Range x_taps = g.taps(2, x);
    if (x_taps.empty()) continue;
    const std::int64_t column = g.position(2, x, x_taps.begin);
    const std::int64_t first = row(z_taps.begin, y_taps.begin) + column;
    Best<T> best{.at = first, .value = in[first]};
    for (std::int64_t kz = z_taps.begin; kz < z_taps.end; ++kz) {
      for (std::int64_t ky = y_taps.begin; ky < y_taps.end; ++ky) {
        best =
            best_of_row(in, row(kz, ky) + column, w.dilation[2], x_taps.end - x_taps.begin, best);
      }
    }
    dx[best.at] += dy[x];
  }
}

template <typename T>
void run_max_pool_grad(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const Geometry g = geometry(args, args.inputs[1].shape(), args.inputs[0].shape());
  const Spatial& size = g.window.out;

  for_each_plane(args, g, [&](std::int64_t plane) {
    const T* in = x + plane * g.window.in_elements();
    const T* out = dy + plane * g.window.out_elements();
    T* gradient = dx + plane * g.window.in_elements();
    std::fill_n(gradient, g.window.in_elements(), T{0});
    for (std::int64_t row = 0; row < size[0] * size[1]; ++row) {
      spread_to_maxima(g, row / size[1], row % size[1], in, out + row * size[2], gradient);
    }
  });
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("AveragePool", dtype,
            {.name = "average_pool.own", .prepare = prepare_rows, .run = run_average_pool<T>});
  table.add("AveragePoolGrad", dtype,
            {.name = "average_pool_grad.own",
             .prepare = prepare_average_pool_grad,
             .run = run_average_pool_grad<T>});
  table.add("MaxPool", dtype,
            {.name = "max_pool.own",
             .supports = supports_max_pool,
             .prepare = prepare_rows,
             .run = run_max_pool<T>});
  table.add("MaxPoolGrad", dtype, {.name = "max_pool_grad.own", .run = run_max_pool_grad<T>});
}

}  // namespace

void add_pool(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_max_pool_places(table);
  add_pool_onednn(table);
  add_pool_halves(table);
}

}  // namespace trainscope::cpu
