// Windows of convolutions and pools on the device, always seen in three spatial dimensions (missing
// ones are 1).
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/api/kernel.h"
#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

// Of planes with fewer than 2^31 elements.
struct DeviceWindow {
  int in[kMaxSpatialRank] = {1, 1, 1};   // sizes of an input plane
  int out[kMaxSpatialRank] = {1, 1, 1};  // sizes of an output plane: windows
  int kernel[kMaxSpatialRank] = {1, 1, 1};
  int stride[kMaxSpatialRank] = {1, 1, 1};
  int dilation[kMaxSpatialRank] = {1, 1, 1};
  int pad[kMaxSpatialRank] = {};      // before
  int pad_end[kMaxSpatialRank] = {};  // after

  __host__ __device__ int in_elements() const { return in[0] * in[1] * in[2]; }
  __host__ __device__ int out_elements() const { return out[0] * out[1] * out[2]; }
  __host__ __device__ int taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// For tensors [N, C, spatial...].
inline DeviceWindow device_window(const WindowParams& params, const Shape& in, const Shape& out) {
  DeviceWindow window;
  for (int axis = 0; axis < params.rank; ++axis) {
    const auto from = static_cast<std::size_t>(axis);
    const int to = axis + kMaxSpatialRank - params.rank;
    window.in[to] = static_cast<int>(in[axis + 2]);
    window.out[to] = static_cast<int>(out[axis + 2]);
    window.kernel[to] = static_cast<int>(params.kernel[from]);
    window.stride[to] = static_cast<int>(params.stride[from]);
    window.dilation[to] = static_cast<int>(params.dilation[from]);
    window.pad[to] = static_cast<int>(params.pad_begin[from]);
    window.pad_end[to] = static_cast<int>(params.pad_end[from]);
  }
  return window;
}

// Whether places in planes, padding and reach of windows included, can be told in 32 bits.
inline Support supports_window(const WindowParams& params, const Shape& in, const Shape& out) {
  constexpr double kMost = std::numeric_limits<int>::max();
  double in_plane = 1.0;
  double out_plane = 1.0;
  double taps = 1.0;
  for (int axis = 0; axis < params.rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const double kernel = static_cast<double>(params.kernel[at]);
    const double pads =
        static_cast<double>(params.pad_begin[at]) + static_cast<double>(params.pad_end[at]);
    const double reach = kernel * static_cast<double>(params.dilation[at]);
    const double last = static_cast<double>(out[axis + 2] * params.stride[at]);
    in_plane *= static_cast<double>(in[axis + 2]) + pads;
    out_plane *= static_cast<double>(out[axis + 2]);
    taps *= kernel;
    if (reach + last + pads > kMost) return {"a window reaches 2^31 elements or more"};
  }
  return supported_if(in_plane <= kMost && out_plane <= kMost && taps <= kMost,
                      "a plane has 2^31 elements or more");
}

// Place of an element of a plane.
struct PlanePlace {
  int axis[kMaxSpatialRank];
};
__device__ inline PlanePlace plane_place(const int (&sizes)[kMaxSpatialRank], int element) {
  const int row = element / sizes[2];
  return {{row / sizes[1], row % sizes[1], element % sizes[2]}};
}

}  // namespace trainscope::cuda
