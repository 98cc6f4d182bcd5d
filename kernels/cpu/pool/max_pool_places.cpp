// MaxPool with the places of the maxima, window by window.
#include <array>
#include <cstdint>
#include <limits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

template <typename T>
struct Largest {
  T value = -std::numeric_limits<T>::infinity();
  std::int64_t place = -1;  // in the plane; none: all padding
};

// The first of the largest elements of window `o`.
template <typename T>
Largest<T> largest(const Window& w, const T* plane, const Spatial& o) {
  std::array<Range, kMaxSpatialRank> taps;
  for (std::size_t axis = 0; axis < taps.size(); ++axis) taps[axis] = taps_inside(w, axis, o[axis]);
  const auto position = [&](std::size_t axis, std::int64_t k) {
    return o[axis] * w.stride[axis] - w.pad[axis] + k * w.dilation[axis];
  };
  Largest<T> best;
  for (std::int64_t kz = taps[0].begin; kz < taps[0].end; ++kz) {
    for (std::int64_t ky = taps[1].begin; ky < taps[1].end; ++ky) {
      for (std::int64_t kx = taps[2].begin; kx < taps[2].end; ++kx) {
        const std::int64_t row = position(0, kz) * w.in[1] + position(1, ky);
        const std::int64_t place = row * w.in[2] + position(2, kx);
        const T value = plane[place];
        const bool better = best.place < 0 || value > best.value || value != value;
        if (better) best = {value, place};
      }
    }
  }
  return best;
}

// x [planes, in...] -> y and places [planes, out...]
template <typename T>
void run(const RunArgs& args) {
  const auto& params = std::get<PoolParams>(args.params);
  const Shape& x = args.inputs[0].shape();
  const Window w = window_of(params.window, x, args.outputs[0].shape());
  const T* from = args.inputs[0].as<const T>();
  T* y = args.outputs[0].present ? args.outputs[0].as<T>() : nullptr;
  auto* places = args.outputs[1].present ? args.outputs[1].as<std::int64_t>() : nullptr;
  const std::int64_t windows = w.out_elements();
  parallel_for(
      args.threads, x[0] * x[1], row_grain(windows * w.taps()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * windows; i < end * windows; ++i) {
          const std::int64_t plane = i / windows;
          const std::int64_t o = i % windows;
          const Spatial window{o / (w.out[1] * w.out[2]), o / w.out[2] % w.out[1], o % w.out[2]};
          const Largest<T> best = largest(w, from + plane * w.in_elements(), window);
          if (y != nullptr) y[i] = best.value;
          if (places == nullptr) continue;
          places[i] = best.place < 0 ? -1 : plane * w.in_elements() + best.place;
        }
      });
}

Support supports(const PrepareArgs& args) {
  return supported_if(args.outputs.size() == 2, "no places are asked for");
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("MaxPool", kDTypeOf<T>,
            {.name = "max_pool.places", .supports = supports, .run = run<T>});
}

}  // namespace

void add_max_pool_places(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
