// MaxPool, AveragePool and their gradients: a thread an element. The gradients gather, so that no
// two threads add to one element.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/conv/window.h"
#include "kernels/cuda/support/strides.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// How places in planes of one size are told without divisions.
struct PlaneDivisors {
  Divisor rows;     // by the size of axis 1
  Divisor columns;  // by the size of axis 2
  int sizes[2] = {1, 1};

  __device__ PlanePlace place(int element) const {
    const auto row = static_cast<int>(columns.divide(static_cast<std::uint32_t>(element)));
    const auto plane = static_cast<int>(rows.divide(static_cast<std::uint32_t>(row)));
    return {{plane, row - plane * sizes[0], element - row * sizes[1]}};
  }
};

PlaneDivisors plane_divisors(const int (&sizes)[kMaxSpatialRank]) {
  const auto divisor = [](int size) {
    return Divisor(static_cast<std::uint32_t>(std::max(1, size)));
  };
  return {.rows = divisor(sizes[1]), .columns = divisor(sizes[2]), .sizes = {sizes[1], sizes[2]}};
}

// x [planes, in...], y [planes, out...]
struct PoolGeometry {
  DeviceWindow window;
  PlaneDivisors in;
  PlaneDivisors out;
  Divisor stride[kMaxSpatialRank];
  std::int64_t planes = 0;
  bool count_include_pad = false;
};

PoolGeometry pool_geometry(const Params& of, const Shape& x, const Shape& y) {
  const auto& params = std::get<PoolParams>(of);
  PoolGeometry g;
  g.window = device_window(params.window, x, y);
  g.planes = x[0] * x[1];
  g.count_include_pad = params.count_include_pad;
  g.in = plane_divisors(g.window.in);
  g.out = plane_divisors(g.window.out);
  for (int a = 0; a < kMaxSpatialRank; ++a) {
    g.stride[a] = Divisor(static_cast<std::uint32_t>(g.window.stride[a]));
  }
  return g;
}

struct IntRange {
  int begin;
  int end;
};

// The elements of window `o` along an axis that lie inside the input.
__device__ IntRange taps_inside(const DeviceWindow& w, int axis, int o) {
  const int start = o * w.stride[axis] - w.pad[axis];
  const int dilation = w.dilation[axis];
  const int last = w.in[axis] - 1 - start;
  if (dilation == 1) {
    return {start >= 0 ? 0 : -start, last + 1 < w.kernel[axis] ? last + 1 : w.kernel[axis]};
  }
  const int end = last < 0 ? 0 : last / dilation + 1;
  return {start >= 0 ? 0 : (-start + dilation - 1) / dilation,
          end < w.kernel[axis] ? end : w.kernel[axis]};
}

// The windows that may have element `i` along an axis.
__device__ IntRange windows_over(const PoolGeometry& g, int axis, int i) {
  const DeviceWindow& w = g.window;
  const auto divide = [&](int x) {
    return static_cast<int>(g.stride[axis].divide(static_cast<std::uint32_t>(x)));
  };
  const int reach = i + w.pad[axis] - (w.kernel[axis] - 1) * w.dilation[axis];
  const int end = divide(i + w.pad[axis]) + 1;
  return {reach <= 0 ? 0 : divide(reach + w.stride[axis] - 1),
          end < w.out[axis] ? end : w.out[axis]};
}

// Whether window `o` has element `i` along an axis, of those in windows_over.
__device__ bool has_element(const DeviceWindow& w, int axis, int o, int i) {
  if (w.dilation[axis] == 1) return true;
  return (i + w.pad[axis] - o * w.stride[axis]) % w.dilation[axis] == 0;
}

// f(element of the plane) for each element of a window that lies inside.
template <class F>
__device__ void for_each_inside(const DeviceWindow& w, const PlanePlace& o, F f) {
  IntRange taps[kMaxSpatialRank];
  int start[kMaxSpatialRank];
#pragma unroll
  for (int a = 0; a < kMaxSpatialRank; ++a) {
    taps[a] = taps_inside(w, a, o.axis[a]);
    start[a] = o.axis[a] * w.stride[a] - w.pad[a];
  }
  for (int z = taps[0].begin; z < taps[0].end; ++z) {
    for (int y = taps[1].begin; y < taps[1].end; ++y) {
      const int row = (start[0] + z * w.dilation[0]) * w.in[1] + start[1] + y * w.dilation[1];
      for (int x = taps[2].begin; x < taps[2].end; ++x) {
        f(row * w.in[2] + start[2] + x * w.dilation[2]);
      }
    }
  }
}

// f(window of the plane, its place) for each window that has the element at `i`, in order.
template <class F>
__device__ void for_each_window_over(const PoolGeometry& g, const PlanePlace& i, F f) {
  const DeviceWindow& w = g.window;
  IntRange windows[kMaxSpatialRank];
#pragma unroll
  for (int a = 0; a < kMaxSpatialRank; ++a) windows[a] = windows_over(g, a, i.axis[a]);
  for (int z = windows[0].begin; z < windows[0].end; ++z) {
    if (!has_element(w, 0, z, i.axis[0])) continue;
    for (int y = windows[1].begin; y < windows[1].end; ++y) {
      if (!has_element(w, 1, y, i.axis[1])) continue;
      for (int x = windows[2].begin; x < windows[2].end; ++x) {
        if (!has_element(w, 2, x, i.axis[2])) continue;
        f((z * w.out[1] + y) * w.out[2] + x, PlanePlace{{z, y, x}});
      }
    }
  }
}

// A thread's element of [planes, elements of a plane]. Blocks are [planes, blocks of a plane].
struct OwnElement {
  std::int64_t plane;
  int element;
};
__device__ OwnElement own_element(int elements) {
  const unsigned blocks = (static_cast<unsigned>(elements) + blockDim.x - 1) / blockDim.x;
  const unsigned plane = blockIdx.x / blocks;  // the same for all threads
  return {plane, static_cast<int>((blockIdx.x - plane * blocks) * blockDim.x + threadIdx.x)};
}

Grid element_grid(std::int64_t planes, int elements) {
  const int warps = (elements + kWarp - 1) / kWarp;
  const int threads = std::clamp(warps * kWarp, kWarp, static_cast<int>(kTeamThreads));
  return {.blocks = team_blocks(planes * ((elements + threads - 1) / threads), 1),
          .threads = dim3(static_cast<unsigned>(threads))};
}

// --- Average -------------------------------------------------------------------------------------

// By how many elements window `o` divides along an axis.
__device__ int counted(const PoolGeometry& g, int axis, int o) {
  const DeviceWindow& w = g.window;
  const IntRange taps = taps_inside(w, axis, o);
  // A dilated window may straddle the whole input; its average is 0.
  if (!g.count_include_pad) return taps.end - taps.begin > 1 ? taps.end - taps.begin : 1;
  // With ceil_mode the last window may reach beyond the padding: that part never counts.
  const int last = w.in[axis] + w.pad_end[axis] - 1 - (o * w.stride[axis] - w.pad[axis]);
  const int reached = last / w.dilation[axis] + 1;
  return reached < w.kernel[axis] ? reached : w.kernel[axis];
}
template <typename T>
__device__ T all_counted(const PoolGeometry& g, const PlanePlace& o) {
  return static_cast<T>(std::int64_t{counted(g, 0, o.axis[0])} * counted(g, 1, o.axis[1]) *
                        counted(g, 2, o.axis[2]));
}

// Bytes: x read once for each window that has it (again from L1), y written once. FLOPs: 1 an
// element of a window, 1 a window.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    average_windows(const PoolGeometry g, const T* x, T* y) {
  const OwnElement own = own_element(g.window.out_elements());
  if (own.element >= g.window.out_elements()) return;
  const std::int64_t i = own.plane * g.window.out_elements() + own.element;
  const T* plane = x + own.plane * g.window.in_elements();
  const PlanePlace o = g.out.place(own.element);
  T sum = 0;
  for_each_inside(g.window, o, [&](int at) { sum += plane[at]; });
  y[i] = sum / all_counted<T>(g, o);
}

// Bytes: dy read once for each element of its window (again from L1), dx written once. FLOPs: 2 for
// each of these.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    spread_averages(const PoolGeometry g, const T* dy, T* dx) {
  const OwnElement own = own_element(g.window.in_elements());
  if (own.element >= g.window.in_elements()) return;
  const std::int64_t i = own.plane * g.window.in_elements() + own.element;
  const T* plane = dy + own.plane * g.window.out_elements();
  T sum = 0;
  for_each_window_over(g, g.in.place(own.element), [&](int window, const PlanePlace& o) {
    sum += plane[window] / all_counted<T>(g, o);
  });
  dx[i] = sum;
}

template <typename T>
void run_average_pool(const RunArgs& args) {
  const PoolGeometry g =
      pool_geometry(args.params, args.inputs[0].shape(), args.outputs[0].shape());
  launch(args.call, element_grid(g.planes, g.window.out_elements()), average_windows<T>, g,
         args.inputs[0].as<const T>(), args.outputs[0].as<T>());
}

template <typename T>
void run_average_pool_grad(const RunArgs& args) {
  const PoolGeometry g =
      pool_geometry(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  launch(args.call, element_grid(g.planes, g.window.in_elements()), spread_averages<T>, g,
         args.inputs[0].as<const T>(), args.outputs[0].as<T>());
}

// --- Maximum -------------------------------------------------------------------------------------

template <typename T>
struct LargestOfWindow {
  T value;
  int place;  // in the plane; -1: all padding
};

// The first of the largest elements; a NaN is larger than any.
template <typename T>
__device__ LargestOfWindow<T> largest_of_window(const DeviceWindow& w, const T* plane,
                                                const PlanePlace& o) {
  LargestOfWindow<T> best{-static_cast<T>(INFINITY), -1};
  for_each_inside(w, o, [&](int at) {
    const T value = plane[at];
    if (best.place < 0 || value > best.value || value != value) best = {value, at};
  });
  return best;
}

// y and places may be null. Bytes: x read once for each window that has it (again from L1), y and
// places written once.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    largest_of_windows(const PoolGeometry g, const T* x, T* y, std::int64_t* places) {
  const OwnElement own = own_element(g.window.out_elements());
  if (own.element >= g.window.out_elements()) return;
  const std::int64_t i = own.plane * g.window.out_elements() + own.element;
  const std::int64_t first = own.plane * g.window.in_elements();
  const LargestOfWindow<T> best = largest_of_window(g.window, x + first, g.out.place(own.element));
  if (y != nullptr) y[i] = best.value;
  if (places != nullptr) places[i] = best.place < 0 ? -1 : first + best.place;
}

// places [planes, out...]: of the first maximum of each window in its plane. Bytes: x read once for
// each window that has it (again from L1), 4 a window written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    find_maxima(const PoolGeometry g, const T* x, std::int32_t* places) {
  const OwnElement own = own_element(g.window.out_elements());
  if (own.element >= g.window.out_elements()) return;
  const std::int64_t i = own.plane * g.window.out_elements() + own.element;
  const T* plane = x + own.plane * g.window.in_elements();
  places[i] = largest_of_window(g.window, plane, g.out.place(own.element)).place;
}

// Bytes: 4 for each window that has the element (again from L1) and dy at its maximum read, dx
// written once. FLOPs: 1 a window.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    spread_to_maxima(const PoolGeometry g, const T* dy, const std::int32_t* places, T* dx) {
  const OwnElement own = own_element(g.window.in_elements());
  if (own.element >= g.window.in_elements()) return;
  const std::int64_t i = own.plane * g.window.in_elements() + own.element;
  const std::int64_t first = own.plane * g.window.out_elements();
  T sum = 0;
  for_each_window_over(g, g.in.place(own.element), [&](int window, const PlanePlace&) {
    if (places[first + window] == own.element) sum += dy[first + window];
  });
  dx[i] = sum;
}

template <typename T>
void run_max_pool(const RunArgs& args) {
  const bool with_places = args.outputs.size() > 1;
  const Shape& y = args.outputs[with_places && !args.outputs[0].present ? 1 : 0].shape();
  const PoolGeometry g = pool_geometry(args.params, args.inputs[0].shape(), y);
  launch(args.call, element_grid(g.planes, g.window.out_elements()), largest_of_windows<T>, g,
         args.inputs[0].as<const T>(), data_or_null<T>(args.outputs, 0),
         data_or_null<std::int64_t>(args.outputs, 1));
}

Prepared prepare_max_pool_grad(const PrepareArgs& args) {
  const auto elements = static_cast<std::size_t>(args.inputs[0].elements());
  return {.workspace_bytes = elements * sizeof(std::int32_t), .state = nullptr};
}

// dy, x -> dx
template <typename T>
void run_max_pool_grad(const RunArgs& args) {
  const PoolGeometry g = pool_geometry(args.params, args.inputs[1].shape(), args.inputs[0].shape());
  auto* places = static_cast<std::int32_t*>(args.workspace);
  launch(args.call, element_grid(g.planes, g.window.out_elements()), find_maxima<T>, g,
         args.inputs[1].as<const T>(), places);
  launch(args.call, element_grid(g.planes, g.window.in_elements()), spread_to_maxima<T>, g,
         args.inputs[0].as<const T>(), places, args.outputs[0].as<T>());
}

// --- The table -----------------------------------------------------------------------------------

const WindowParams& pool_window(const PrepareArgs& args) {
  return std::get<PoolParams>(args.params).window;
}
Support supports_pool(const PrepareArgs& args) {
  return supports_window(pool_window(args), args.inputs[0].shape(), args.outputs[0].shape());
}
Support supports_average_pool_grad(const PrepareArgs& args) {
  return supports_window(pool_window(args), args.outputs[0].shape(), args.inputs[0].shape());
}
Support supports_max_pool_grad(const PrepareArgs& args) {
  return supports_window(pool_window(args), args.inputs[1].shape(), args.inputs[0].shape());
}

template <typename T>
void add_pool_for(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("AveragePool", dtype,
            {.name = "average_pool.cuda", .supports = supports_pool, .run = run_average_pool<T>});
  table.add("AveragePoolGrad", dtype,
            {.name = "average_pool_grad.cuda",
             .supports = supports_average_pool_grad,
             .run = run_average_pool_grad<T>});
  table.add("MaxPool", dtype,
            {.name = "max_pool.cuda", .supports = supports_pool, .run = run_max_pool<T>});
  table.add("MaxPoolGrad", dtype,
            {.name = "max_pool_grad.cuda",
             .supports = supports_max_pool_grad,
             .prepare = prepare_max_pool_grad,
             .run = run_max_pool_grad<T>});
}

}  // namespace

void add_pool(KernelTable& table) { add_pool_for<float>(table); }

}  // namespace trainscope::cuda
