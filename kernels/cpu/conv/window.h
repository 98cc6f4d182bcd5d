// Windows of convolutions and pools, always seen in three spatial dimensions (missing ones are 1).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"

namespace trainscope::cpu {

struct Window {
  Spatial in{1, 1, 1};   // sizes of an input plane
  Spatial out{1, 1, 1};  // sizes of an output plane: windows
  Spatial kernel{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};
  Spatial pad{};      // before
  Spatial pad_end{};  // after

  std::int64_t in_elements() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_elements() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// For tensors [N, C, spatial...].
inline Window window_of(const WindowParams& params, const Shape& in, const Shape& out) {
  Window window;
  for (int axis = 0; axis < params.rank; ++axis) {
    const auto from = static_cast<std::size_t>(axis);
    const auto to = static_cast<std::size_t>(axis + kMaxSpatialRank - params.rank);
    window.in[to] = in[axis + 2];
    window.out[to] = out[axis + 2];
    window.kernel[to] = params.kernel[from];
    window.stride[to] = params.stride[from];
    window.dilation[to] = params.dilation[from];
    window.pad[to] = params.pad_begin[from];
    window.pad_end[to] = params.pad_end[from];
  }
  return window;
}

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
};

// The windows whose element `k` along `axis` lies inside the input.
inline Range windows_inside(const Window& window, std::size_t axis, std::int64_t k) {
  const std::int64_t shift = k * window.dilation[axis] - window.pad[axis];  // o * stride + shift
  const std::int64_t stride = window.stride[axis];
  const std::int64_t last = window.in[axis] - 1 - shift;
  return {.begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride,
          .end = last < 0 ? 0 : std::min(window.out[axis], last / stride + 1)};
}

// The elements of window `o` along `axis` that lie inside the input.
inline Range taps_inside(const Window& window, std::size_t axis, std::int64_t o) {
  const std::int64_t start = o * window.stride[axis] - window.pad[axis];
  const std::int64_t dilation = window.dilation[axis];
  const std::int64_t last = window.in[axis] - 1 - start;
  return {.begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation,
          .end = last < 0 ? 0 : std::min(window.kernel[axis], last / dilation + 1)};
}

// What our kernels for images at stride 1 ask of a convolution.
inline Support is_image_at_stride_1(const ConvParams& params, const Shape& x, const Shape& y) {
  const WindowParams& window = params.window;
  if (window.rank != 2) return {"not an image: the windows have not two axes"};
  if (params.group != 1) return {"channels in groups"};
  if (x.elements() == 0 || y.elements() == 0) return {"a tensor has no elements"};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (window.stride[axis] != 1) return {"a stride above 1"};
    if (window.dilation[axis] != 1) return {"dilated windows"};
  }
  return {};
}

// Pairs of a window and an element of it inside the input: what is multiplied for each pair of
// channels.
inline std::int64_t pairs_inside(const Window& window) {
  std::int64_t pairs = 1;
  for (std::size_t axis = 0; axis < window.kernel.size(); ++axis) {
    std::int64_t along = 0;
    for (std::int64_t k = 0; k < window.kernel[axis]; ++k) {
      const Range windows = windows_inside(window, axis, k);
      along += std::max<std::int64_t>(0, windows.end - windows.begin);
    }
    pairs *= along;
  }
  return pairs;
}

// A run of windows in one output row, all with the same element of the kernel inside the input.
struct Row {
  std::int64_t tap;     // element of the kernel plane
  std::int64_t out;     // offset in the output plane, continues with step 1
  std::int64_t in;      // offset in the input plane, continues with step stride[2]
  std::int64_t length;  // > 0
};

// Calls f(Row) for element (z, y, x) of the kernel.
template <class F>
void for_each_row_of_tap(const Window& w, const Spatial& at, F&& f) {
  const Range z = windows_inside(w, 0, at[0]);
  const Range y = windows_inside(w, 1, at[1]);
  const Range x = windows_inside(w, 2, at[2]);
  if (x.empty()) return;
  const std::int64_t in_x = x.begin * w.stride[2] - w.pad[2] + at[2] * w.dilation[2];
  const std::int64_t tap = (at[0] * w.kernel[1] + at[1]) * w.kernel[2] + at[2];
  for (std::int64_t oz = z.begin; oz < z.end; ++oz) {
    const std::int64_t in_z = oz * w.stride[0] - w.pad[0] + at[0] * w.dilation[0];
    for (std::int64_t oy = y.begin; oy < y.end; ++oy) {
      const std::int64_t in_y = oy * w.stride[1] - w.pad[1] + at[1] * w.dilation[1];
      f(Row{.tap = tap,
            .out = (oz * w.out[1] + oy) * w.out[2] + x.begin,
            .in = (in_z * w.in[1] + in_y) * w.in[2] + in_x,
            .length = x.end - x.begin});
    }
  }
}

// Calls f(Row) until every pair of window and element inside the input was covered once, the
// elements of the kernel in order.
template <class F>
void for_each_row(const Window& window, F&& f) {
  for (std::int64_t z = 0; z < window.kernel[0]; ++z) {
    for (std::int64_t y = 0; y < window.kernel[1]; ++y) {
      for (std::int64_t x = 0; x < window.kernel[2]; ++x) {
        for_each_row_of_tap(window, {z, y, x}, f);
      }
    }
  }
}

}  // namespace trainscope::cpu
