// How the gradient by the weights of a convolution with many channels is divided: blocks of pixels,
// panels of channels, groups of taps (conv_grad_weight_wide.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/params.h"
#include "kernels/cpu/conv/tap_tile.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {

// x [examples, in_channels, in...], dy [examples, out_channels, out...], dw [out_channels,
// in_channels, kernel...]
struct TapPlan {
  // Pixels of a block: what a tile reads stays in L1 or close to it.
  static constexpr std::int64_t kBlockPixels = 512;
  // Elements of the blocks that are packed before threads wait for each other: 2 MiB.
  static constexpr std::int64_t kPackedElements = std::int64_t{1} << 19;
  static constexpr std::int64_t kMostColumns = 4 * kBlockPixels;
  static constexpr std::int64_t kMostTaps = 64;
  static constexpr std::int64_t kMostPanels = TapOperands::kMostTaps;  // of x, taken together
  // Of a block, packed: elements, and of x for each pixel of dy. Windows that are far wider than
  // what they read (a large dilation) would pack the same pixels, or zeros, many times.
  static constexpr std::int64_t kMostOfBlock = 4 * kPackedElements;
  static constexpr std::int64_t kMostOfPixel = 8;

  Window window;
  std::int64_t examples = 0;
  std::int64_t in_channels = 0;   // channels of x
  std::int64_t out_channels = 0;  // channels of dy
  std::int64_t taps = 0;

  // Of a block: rows of one plane of dy, or whole planes of some examples.
  std::int64_t block_rows = 0;
  std::int64_t block_examples = 0;
  std::int64_t strips = 0;  // blocks of a plane
  std::int64_t blocks = 0;
  std::int64_t blocks_packed = 0;  // at once

  // Packed dy: [dy_panels] [examples, rows, columns, lines].
  std::int64_t lines = 0;
  std::int64_t dy_panels = 0;
  std::int64_t dy_panel = 0;  // elements

  // Packed x: [x_panels] [examples, rows, columns, lanes], with the zeros around.
  std::int64_t lanes = 0;
  std::int64_t x_panels = 0;
  std::int64_t x_panel = 0;  // elements
  std::int64_t columns = 0;

  // Panels of x taken together, so that their taps fill tiles, and where these begin in them.
  std::int64_t together = 0;
  std::int64_t tap_at[kMostPanels * kMostTaps] = {};

  std::int64_t tiles() const { return divide_up(x_panels, together) * dy_panels; }
  std::int64_t tap_groups() const { return divide_up(together * taps, TapOperands::kMostTaps); }

  // The sums [out_channels, x_panels, taps, lanes] are in the result itself where lanes do not
  // reach beyond.
  std::int64_t sums_panel() const { return taps * lanes; }
  std::int64_t sums_row() const { return x_panels * sums_panel(); }
  bool sums_in_result() const { return in_channels % lanes == 0; }

  std::int64_t packed_rows(std::int64_t rows) const {
    return (rows - 1) * window.stride[1] + (window.kernel[1] - 1) * window.dilation[1] + 1;
  }
  std::int64_t x_row() const { return columns * lanes; }
  std::int64_t packed_x() const { return x_panels * x_panel; }     // of a block
  std::int64_t packed_dy() const { return dy_panels * dy_panel; }  // of a block
};

inline void divide_into_blocks(TapPlan& plan) {
  const Window& w = plan.window;
  const std::int64_t strips =
      std::min(divide_up(w.out_elements(), TapPlan::kBlockPixels), w.out[1]);
  plan.block_rows = divide_up(w.out[1], strips);
  plan.strips = divide_up(w.out[1], plan.block_rows);
  plan.block_examples =
      std::clamp<std::int64_t>(TapPlan::kBlockPixels / w.out_elements(), 1, plan.examples);
  plan.blocks = divide_up(plan.examples, plan.block_examples) * plan.strips;
}

inline void lay_out_panels(TapPlan& plan) {
  const Window& w = plan.window;
  plan.lines = tap_tile().rows;
  plan.lanes = tap_tile().lanes;
  plan.dy_panels = divide_up(plan.out_channels, plan.lines);
  plan.x_panels = divide_up(plan.in_channels, plan.lanes);
  plan.columns = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
  plan.dy_panel = plan.block_examples * plan.block_rows * w.out[2] * plan.lines;
  plan.x_panel = plan.block_examples * plan.packed_rows(plan.block_rows) * plan.x_row();
  plan.blocks_packed = std::clamp<std::int64_t>(
      TapPlan::kPackedElements / (plan.packed_x() + plan.packed_dy()), 1, plan.blocks);
}

inline void place_taps(TapPlan& plan) {
  const Window& w = plan.window;
  plan.together = plan.taps % TapOperands::kMostTaps == 0 ? 1 : TapOperands::kMostTaps;
  for (std::int64_t i = 0; i < plan.together * plan.taps; ++i) {
    const std::int64_t row = i % plan.taps / w.kernel[2] * w.dilation[1];
    const std::int64_t column = i % w.kernel[2] * w.dilation[2];
    plan.tap_at[i] = i / plan.taps * plan.x_panel + row * plan.x_row() + column * plan.lanes;
  }
}

inline TapPlan tap_plan_of(const Params& params, const Shape& x, const Shape& y) {
  TapPlan plan{.window = window_of(std::get<ConvParams>(params).window, x, y),
               .examples = x[0],
               .in_channels = x[1],
               .out_channels = y[1]};
  plan.taps = plan.window.taps();
  divide_into_blocks(plan);
  lay_out_panels(plan);
  place_taps(plan);
  return plan;
}

}  // namespace trainscope::cpu
