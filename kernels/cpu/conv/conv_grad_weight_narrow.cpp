// Gradients by the weights of convolutions with few channels, at stride 1, where these do not fill
// the tiles of conv_grad_weight_wide.cpp. oneDNN computes sixteen out channels at once, whether
// there are so many or not; here the registers are filled with the pixels of a plane, and the sums
// of some weights stay in registers for all examples of a part of the batch. For that the planes of
// x are copied once for each column of the kernel, moved by it and as wide as dy: then a row of the
// kernel is a distance in memory.
//
// The last register of a plane may reach beyond it, where dy counts as zeros that are multiplied: a
// pixel of x that is not finite spreads to weights that it does not belong to; so does one of dy
// through the zeros around x.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/gemm/dot_tile.h"
#include "kernels/cpu/support/fixed_chunks.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kCopied = 8;  // elements at once

constexpr std::int64_t whole_lanes(std::int64_t n) { return round_up(n, kDotLanes); }

// x [examples, in_channels, in...], dy [examples, out_channels, out...], dw [out_channels,
// in_channels, kernel...]
struct Planes {
  Window window;
  std::int64_t examples = 0;
  std::int64_t in_channels = 0;   // channels of x
  std::int64_t out_channels = 0;  // channels of dy

  std::int64_t kernel_rows() const { return window.kernel[1]; }
  std::int64_t kernel_columns() const { return window.kernel[2]; }
  std::int64_t columns() const { return window.out[2]; }
  std::int64_t copied_rows() const { return window.out[1] + kernel_rows() - 1; }
  // Elements of a plane of dy with what its last register reads too.
  std::int64_t dy_plane() const { return whole_lanes(window.out_elements()); }
  bool copies_dy() const { return dy_plane() != window.out_elements(); }
  // Of one copy of a plane of x: the last row of the kernel reads as many elements beyond it.
  std::int64_t x_plane() const {
    return whole_lanes(copied_rows() * columns() + kCopied + dy_plane() - window.out_elements());
  }
  std::int64_t padded_columns() const { return columns() + kernel_columns() - 1; }
  std::int64_t padded_plane() const {
    return whole_lanes(copied_rows() * padded_columns() + kCopied);
  }
  std::int64_t x_example() const { return in_channels * kernel_columns() * x_plane(); }
  std::int64_t taps() const { return in_channels * window.taps(); }
};

Planes planes_of(const Params& params, const Shape& x, const Shape& y) {
  return {.window = window_of(std::get<ConvParams>(params).window, x, y),
          .examples = x[0],
          .in_channels = x[1],
          .out_channels = y[1]};
}

// A plane of x with the zeros around that windows read, and what copy_moved() reads after it.
const float* pad_plane(const Planes& p, const float* x, float* to) {
  const Window& w = p.window;
  std::fill_n(to, p.padded_plane(), 0.0F);
  for (std::int64_t row = 0; row < w.in[1]; ++row) {
    const std::int64_t at = (row + w.pad[1]) * p.padded_columns() + w.pad[2];
    std::copy_n(x + row * w.in[2], w.in[2], to + at);
  }
  return to;
}

// copy[row, column] = padded[row, column + kx]. Whole registers are copied: what is too much in one
// row is overwritten by the next, and by the zeros after the last one.
void copy_moved(const Planes& p, const float* padded, std::int64_t kx, float* copy) {
  const std::int64_t columns = p.columns();
  for (std::int64_t row = 0; row < p.copied_rows(); ++row) {
    const float* from = padded + row * p.padded_columns() + kx;
    float* to = copy + row * columns;
    for (std::int64_t at = 0; at < columns; at += kCopied) {
      std::memcpy(to + at, from + at, kCopied * sizeof(float));
    }
  }
  std::fill(copy + p.copied_rows() * columns, copy + p.x_plane(), 0.0F);
}

// All copies of all planes of x: [examples, in_channels, kernel_columns, x_plane].
void copy_x(const Planes& p, const float* x, float* copies, float* plane_padded) {
  for (std::int64_t plane = 0; plane < p.examples * p.in_channels; ++plane) {
    const float* padded = pad_plane(p, x + plane * p.window.in_elements(), plane_padded);
    for (std::int64_t kx = 0; kx < p.kernel_columns(); ++kx) {
      copy_moved(p, padded, kx, copies);
      copies += p.x_plane();
    }
  }
}

// The planes of dy with zeros after each.
const float* copy_dy(const Planes& p, const float* dy, float* copies) {
  const std::int64_t size = p.window.out_elements();
  for (std::int64_t plane = 0; plane < p.examples * p.out_channels; ++plane) {
    float* to = copies + plane * p.dy_plane();
    std::copy_n(dy + plane * size, size, to);
    std::fill(to + size, to + p.dy_plane(), 0.0F);
  }
  return copies;
}

// Where the element of the first example's copies lies that belongs to a tap and the first pixel.
const float* line_of_tap(const Planes& p, const float* copies, std::int64_t tap) {
  const std::int64_t kx = tap % p.kernel_columns();
  const std::int64_t ky = tap / p.kernel_columns() % p.kernel_rows();
  const std::int64_t channel = tap / p.window.taps();
  return copies + (channel * p.kernel_columns() + kx) * p.x_plane() + ky * p.columns();
}

void sum_all(const Planes& p, const float* dy, const float* copies, float* dw) {
  const DotTile& tile = dot_tile();
  for (std::int64_t tap = 0; tap < p.taps(); tap += tile.columns) {
    const float* lines[DotTile::kMostColumns] = {};
    const auto columns = std::min<std::int64_t>(tile.columns, p.taps() - tap);
    for (std::int64_t j = 0; j < columns; ++j) lines[j] = line_of_tap(p, copies, tap + j);
    for (std::int64_t m = 0; m < p.out_channels; m += tile.rows) {
      const auto rows = std::min<std::int64_t>(tile.rows, p.out_channels - m);
      tile.sums[rows - 1][columns - 1]({.segments = p.examples,
                                        .steps = p.dy_plane() / kDotLanes,
                                        .a = dy + m * p.dy_plane(),
                                        .a_line = p.dy_plane(),
                                        .a_segment = p.out_channels * p.dy_plane(),
                                        .b = lines,
                                        .b_segment = p.x_example(),
                                        .to = dw + m * p.taps() + tap,
                                        .to_row = p.taps()});
    }
  }
}

// oneDNN is as quick where both sides have more channels, where the pixels do not fill the
// registers, and where the copies of a chunk leave L2. Convolutions with windows of one
// element are matmuls.
constexpr std::int64_t kMostChannels = 16;
constexpr std::int64_t kMostOfOtherSide = 64;
constexpr std::int64_t kMostCopies = std::int64_t{1} << 18;  // elements
Support pays(const Planes& p) {
  const std::int64_t pixels = p.window.out_elements();
  const std::int64_t dy = p.copies_dy() ? p.out_channels * p.dy_plane() : 0;
  if (p.window.taps() <= 1) return {"windows of one element are matmuls"};
  if (std::min(p.in_channels, p.out_channels) > kMostChannels ||
      std::max(p.in_channels, p.out_channels) > kMostOfOtherSide) {
    return {"more than 16 in and out channels, or than 64 of one"};
  }
  if (p.dy_plane() - pixels > pixels / 4) return {"a plane leaves a fifth of its registers empty"};
  return supported_if(p.examples * std::max(p.x_example(), dy) <= kMostCopies,
                      "the copies of a part of the batch would leave L2");
}

Support supports(const PrepareArgs& args) {
  const Shape& x = args.inputs[0].shape();
  const Shape& y = args.inputs[1].shape();
  const Support image = is_image_at_stride_1(std::get<ConvParams>(args.params), x, y);
  return image ? pays(planes_of(args.params, x, y)) : image;
}

// Workspace: the copies of x, those of dy, a padded plane.
Prepared prepare(const PrepareArgs& args) {
  const Planes p = planes_of(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  const std::int64_t dy = p.copies_dy() ? p.out_channels * p.dy_plane() : 0;
  const auto elements =
      static_cast<std::size_t>(p.examples * (p.x_example() + dy) + p.padded_plane());
  return {.workspace_bytes = elements * sizeof(float), .state = nullptr};
}

// Whole registers of pixels; the planes of x are copied for each column of the kernel.
Estimate estimate(const PrepareArgs& args, const Estimate&) {
  const Planes p = planes_of(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  Work work = once_through(args, multiplied(2, p.examples, p.out_channels, p.taps(), p.dy_plane()));
  const std::int64_t dy = p.copies_dy() ? p.out_channels * p.dy_plane() : 0;
  work.add_passed_on(multiplied(sizeof(float), p.examples, p.x_example() + dy));
  return work.estimate();
}

// On one thread: others take other chunks of the batch.
void run(const RunArgs& args) {
  const Planes p = planes_of(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  auto* copies = static_cast<float*>(args.workspace);
  float* after_x = copies + p.examples * p.x_example();
  float* after_dy = after_x + (p.copies_dy() ? p.examples * p.out_channels * p.dy_plane() : 0);
  const auto* dy = args.inputs[1].as<const float>();
  copy_x(p, args.inputs[0].as<const float>(), copies, after_dy);
  if (p.copies_dy()) dy = copy_dy(p, dy, after_x);
  sum_all(p, dy, copies, args.outputs[0].as<float>());
}

constexpr Kernel kOfChunk = {.name = "conv_grad_weight.narrow",
                             .supports = supports,
                             .prepare = prepare,
                             .run = run,
                             .estimate = estimate};
constexpr FixedSplit kSumOverBatch = {.slices_input = {true, true}, .slices_output = false};

}  // namespace

void add_conv_grad_weight_narrow(KernelTable& table) {
  table.add("ConvGradWeight", DType::kF32,
            in_fixed_chunks<kOfChunk, kSumOverBatch>("conv_grad_weight.narrow"));
}

}  // namespace trainscope::cpu
