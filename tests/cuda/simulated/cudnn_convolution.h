// The products of a convolution of a simulated cuDNN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/cuda/simulated/cudnn_graph.h"

namespace trainscope::simulated {

// Sizes of a convolution with three spatial axes, of which the first may be 1.
struct ConvSizes {
  std::int64_t batch, groups, in_per_group, out_per_group;
  std::array<std::int64_t, 3> in, out, kernel, stride, dilation, pad;
  bool flips;

  std::int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

inline ConvSizes conv_sizes(const GraphOp& op, const Dims& in, const Dims& w, const Dims& out) {
  ConvSizes s{.batch = in[0],
              .groups = in[1] / w[1],
              .in_per_group = w[1],
              .out_per_group = out[1] * w[1] / in[1],
              .in = {1, 1, 1},
              .out = {1, 1, 1},
              .kernel = {1, 1, 1},
              .stride = {1, 1, 1},
              .dilation = {1, 1, 1},
              .pad = {0, 0, 0},
              .flips = op.window.flips};
  const std::size_t rank = in.size() - 2;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::size_t to = axis + 3 - rank;
    s.in[to] = in[axis + 2];
    s.out[to] = out[axis + 2];
    s.kernel[to] = w[axis + 2];
    s.stride[to] = op.window.stride[axis];
    s.dilation[to] = op.window.dilation[axis];
    s.pad[to] = op.window.pad_begin[axis];
  }
  return s;
}

// Calls f(x, w, y), places in dense tensors, for every product of a convolution.
template <class F>
void for_each_product(const ConvSizes& s, F f) {
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t m = 0; m < s.groups * s.out_per_group; ++m) {
      const std::int64_t first = m / s.out_per_group * s.in_per_group;
      const std::int64_t y = (n * s.groups * s.out_per_group + m) * s.out_plane();
      for (std::int64_t c = 0; c < s.in_per_group; ++c) {
        const std::int64_t x = (n * s.groups * s.in_per_group + first + c) * s.in_plane();
        for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
          const std::int64_t w =
              (m * s.in_per_group + c) * s.taps() + (s.flips ? s.taps() - 1 - tap : tap);
          const std::array<std::int64_t, 3> t = {tap / (s.kernel[1] * s.kernel[2]),
                                                 tap / s.kernel[2] % s.kernel[1],
                                                 tap % s.kernel[2]};
          for (std::int64_t i = 0; i < s.out[0]; ++i) {
            const std::int64_t a = i * s.stride[0] + t[0] * s.dilation[0] - s.pad[0];
            if (a < 0 || a >= s.in[0]) continue;
            for (std::int64_t j = 0; j < s.out[1]; ++j) {
              const std::int64_t b = j * s.stride[1] + t[1] * s.dilation[1] - s.pad[1];
              if (b < 0 || b >= s.in[1]) continue;
              for (std::int64_t k = 0; k < s.out[2]; ++k) {
                const std::int64_t d = k * s.stride[2] + t[2] * s.dilation[2] - s.pad[2];
                if (d < 0 || d >= s.in[2]) continue;
                f(x + (a * s.in[1] + b) * s.in[2] + d, w, y + (i * s.out[1] + j) * s.out[2] + k);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace trainscope::simulated
