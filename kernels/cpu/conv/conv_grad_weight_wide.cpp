// Gradients by the weights of convolutions with many channels. Blocks of pixels (rows of a plane,
// or small planes of some examples) are packed once, channels innermost: those of dy by the lines
// of a tile (tap_tile.h), those of x by its lanes, with the zeros around them. An element of the
// kernel, a tap, is then a distance in the packed x, so that nothing is packed once for each, and
// a tile of sums stays in registers for a whole block. Blocks are added in their order and threads
// take tiles: the same bits for any number of them, without partial results.
//
// The zeros around x are multiplied: a pixel of dy that is not finite spreads to weights that it
// does not belong to.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/tap_tile.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/gemm/gemm_pack.h"
#include "kernels/cpu/movement/transpose_block.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

// Pixels of a block: what a tile reads stays in L1 or close to it.
constexpr std::int64_t kBlockPixels = 512;
// Elements of the blocks that are packed before threads wait for each other: 2 MiB.
constexpr std::int64_t kPackedElements = std::int64_t{1} << 19;
constexpr std::int64_t kMostColumns = 4 * kBlockPixels;
constexpr std::int64_t kMostTaps = 64;
constexpr std::int64_t kMostPanels = TapOperands::kMostTaps;  // of x, taken together
// Of a block, packed: elements, and of x for each pixel of dy. Windows that are far wider than what
// they read (a large dilation) would pack the same pixels, or zeros, many times.
constexpr std::int64_t kMostOfBlock = 4 * kPackedElements;
constexpr std::int64_t kMostOfPixel = 8;

// x [examples, in_channels, in...], dy [examples, out_channels, out...], dw [out_channels,
// in_channels, kernel...]
struct Plan {
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

void divide_into_blocks(Plan& plan) {
  const Window& w = plan.window;
  const std::int64_t strips = std::min(divide_up(w.out_elements(), kBlockPixels), w.out[1]);
  plan.block_rows = divide_up(w.out[1], strips);
  plan.strips = divide_up(w.out[1], plan.block_rows);
  plan.block_examples = std::clamp<std::int64_t>(kBlockPixels / w.out_elements(), 1, plan.examples);
  plan.blocks = divide_up(plan.examples, plan.block_examples) * plan.strips;
}

void lay_out_panels(Plan& plan) {
  const Window& w = plan.window;
  plan.lines = tap_tile().rows;
  plan.lanes = tap_tile().lanes;
  plan.dy_panels = divide_up(plan.out_channels, plan.lines);
  plan.x_panels = divide_up(plan.in_channels, plan.lanes);
  plan.columns = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
  plan.dy_panel = plan.block_examples * plan.block_rows * w.out[2] * plan.lines;
  plan.x_panel = plan.block_examples * plan.packed_rows(plan.block_rows) * plan.x_row();
  plan.blocks_packed = std::clamp<std::int64_t>(
      kPackedElements / (plan.packed_x() + plan.packed_dy()), 1, plan.blocks);
}

void place_taps(Plan& plan) {
  const Window& w = plan.window;
  plan.together = plan.taps % TapOperands::kMostTaps == 0 ? 1 : TapOperands::kMostTaps;
  for (std::int64_t i = 0; i < plan.together * plan.taps; ++i) {
    const std::int64_t row = i % plan.taps / w.kernel[2] * w.dilation[1];
    const std::int64_t column = i % w.kernel[2] * w.dilation[2];
    plan.tap_at[i] = i / plan.taps * plan.x_panel + row * plan.x_row() + column * plan.lanes;
  }
}

Plan plan_of(const Params& params, const Shape& x, const Shape& y) {
  Plan plan{.window = window_of(std::get<ConvParams>(params).window, x, y),
            .examples = x[0],
            .in_channels = x[1],
            .out_channels = y[1]};
  plan.taps = plan.window.taps();
  divide_into_blocks(plan);
  lay_out_panels(plan);
  place_taps(plan);
  return plan;
}

struct Block {
  std::int64_t example = 0;
  std::int64_t examples = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
};

Block block_at(const Plan& plan, std::int64_t index) {
  const std::int64_t example = index / plan.strips * plan.block_examples;
  const std::int64_t row = index % plan.strips * plan.block_rows;
  return {.example = example,
          .examples = std::min(plan.block_examples, plan.examples - example),
          .row = row,
          .rows = std::min(plan.block_rows, plan.window.out[1] - row)};
}

// --- Packing -------------------------------------------------------------------------------------

void pack_dy(const Plan& plan, const Block& block, std::int64_t panel, const float* dy, float* to) {
  const Window& w = plan.window;
  const std::int64_t first = panel * plan.lines;
  const std::int64_t depth = block.rows * w.out[2];
  for (std::int64_t e = 0; e < block.examples; ++e) {
    const std::int64_t plane = (block.example + e) * plan.out_channels + first;
    pack_panels<float>({dy + plane * w.out_elements() + block.row * w.out[2], w.out_elements(), 1},
                       std::min(plan.lines, plan.out_channels - first), depth, plan.lines,
                       to + e * depth * plan.lines);
  }
}

// A row of pixels with the zeros beside it; `from` is the first channel's.
void pack_row(const Plan& plan, std::int64_t channels, const float* from, float* to) {
  const Window& w = plan.window;
  const std::int64_t before = std::min(w.pad[2], plan.columns);
  const std::int64_t width = std::min(w.in[2], plan.columns - before);
  float* pixels = to + before * plan.lanes;
  std::fill(to, pixels, 0.0F);
  pack_panels<float>({from, w.in_elements(), 1}, channels, width, plan.lanes, pixels);
  std::fill(pixels + width * plan.lanes, to + plan.x_row(), 0.0F);
}

void pack_x(const Plan& plan, const Block& block, std::int64_t panel, const float* x, float* to) {
  const Window& w = plan.window;
  const std::int64_t first = panel * plan.lanes;
  const std::int64_t channels = std::min(plan.lanes, plan.in_channels - first);
  for (std::int64_t e = 0; e < block.examples; ++e) {
    const float* plane = x + ((block.example + e) * plan.in_channels + first) * w.in_elements();
    const std::int64_t top = block.row * w.stride[1] - w.pad[1];
    for (std::int64_t row = top; row < top + plan.packed_rows(block.rows); ++row) {
      if (row < 0 || row >= w.in[1]) {
        std::fill_n(to, plan.x_row(), 0.0F);
      } else {
        pack_row(plan, channels, plane + row * w.in[2], to);
      }
      to += plan.x_row();
    }
  }
}

// Workspace: packed x, packed dy, and the sums where the result has no room for them.
struct Memory {
  float* x = nullptr;
  float* dy = nullptr;
  float* sums = nullptr;
};

// Blocks of the batch, packed one after the other.
void pack(const RunArgs& args, const Plan& plan, const Range& blocks, const Memory& memory) {
  const auto* x = args.inputs[0].as<const float>();
  const auto* dy = args.inputs[1].as<const float>();
  const std::int64_t panels = plan.x_panels;
  // With each panel of x an equal part of the panels of dy.
  const auto pack_panel = [&](std::int64_t at, std::int64_t panel) {
    const Block block = block_at(plan, blocks.begin + at);
    pack_x(plan, block, panel, x, memory.x + at * plan.packed_x() + panel * plan.x_panel);
    const std::int64_t last = (panel + 1) * plan.dy_panels / panels;
    for (std::int64_t i = panel * plan.dy_panels / panels; i < last; ++i) {
      pack_dy(plan, block, i, dy, memory.dy + at * plan.packed_dy() + i * plan.dy_panel);
    }
  };
  const std::int64_t grain = row_grain((plan.packed_x() + plan.packed_dy()) / panels);
  parallel_for(args.threads, (blocks.end - blocks.begin) * panels, grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) pack_panel(i / panels, i % panels);
               });
}

// --- Sums ----------------------------------------------------------------------------------------

// A tile of dw for all taps: panel `dy` of dy, `panels` ones of x from `x` on.
struct Tile {
  std::int64_t dy = 0;
  std::int64_t x = 0;
  std::int64_t panels = 0;
  std::int64_t kept = 0;  // lines
};

Tile tile_at(const Plan& plan, std::int64_t index) {
  const std::int64_t dy = index % plan.dy_panels;
  const std::int64_t x = index / plan.dy_panels * plan.together;
  return {.dy = dy,
          .x = x,
          .panels = std::min(plan.together, plan.x_panels - x),
          .kept = std::min(plan.lines, plan.out_channels - dy * plan.lines)};
}

float* sums_of(const Plan& plan, const Memory& memory, const Tile& tile) {
  return memory.sums + tile.dy * plan.lines * plan.sums_row() + tile.x * plan.sums_panel();
}

// Groups [begin, end) of a tile's taps; `memory` begins at the block's panels.
void add_block(const Plan& plan, const Block& block, const Memory& memory, const Tile& tile,
               const Range& groups) {
  const Window& w = plan.window;
  TapOperands operands{.examples = block.examples,
                       .rows = block.rows,
                       .columns = w.out[2],
                       .dy = memory.dy + tile.dy * plan.dy_panel,
                       .x = memory.x + tile.x * plan.x_panel,
                       .x_example = plan.packed_rows(block.rows) * plan.x_row(),
                       .x_row = w.stride[1] * plan.x_row(),
                       .x_column = w.stride[2] * plan.lanes,
                       .sums_row = plan.sums_row(),
                       .kept = tile.kept,
                       .added = block.example > 0 || block.row > 0};
  const std::int64_t all = std::min(tile.panels * plan.taps, groups.end * TapOperands::kMostTaps);
  for (std::int64_t tap = groups.begin * TapOperands::kMostTaps; tap < all;
       tap += TapOperands::kMostTaps) {
    const auto taps = std::min<std::int64_t>(TapOperands::kMostTaps, all - tap);
    std::copy_n(plan.tap_at + tap, taps, operands.taps);
    operands.sums = sums_of(plan, memory, tile) + tap * plan.lanes;
    tap_tile().sums[taps - 1](operands);
  }
}

// A panel of sums [taps, lanes] transposed to dw [channels, taps]; they may be the same memory.
void transpose_panel(const Plan& plan, std::int64_t channels, const float* sums, float* dw) {
  constexpr std::int64_t kSide = 8;
  float copy[kMostTaps * TapTile::kMostLanes];
  std::copy_n(sums, plan.sums_panel(), copy);
  std::int64_t tap = 0;
  for (; channels == plan.lanes && tap + kSide <= plan.taps; tap += kSide) {
    for (std::int64_t lane = 0; lane < plan.lanes; lane += kSide) {
      transpose_block(copy + tap * plan.lanes + lane, plan.lanes, dw + lane * plan.taps + tap,
                      plan.taps);
    }
  }
  for (; tap < plan.taps; ++tap) {
    for (std::int64_t lane = 0; lane < channels; ++lane) {
      dw[lane * plan.taps + tap] = copy[tap * plan.lanes + lane];
    }
  }
}

// The sums of a tile's lines, panel by panel.
void transpose_tile(const Plan& plan, const Memory& memory, const Tile& tile, float* dw) {
  for (std::int64_t i = 0; i < tile.kept; ++i) {
    const float* sums = sums_of(plan, memory, tile) + i * plan.sums_row();
    for (std::int64_t panel = tile.x; panel < tile.x + tile.panels; ++panel) {
      const std::int64_t channel = panel * plan.lanes;
      transpose_panel(plan, std::min(plan.lanes, plan.in_channels - channel), sums,
                      dw + ((tile.dy * plan.lines + i) * plan.in_channels + channel) * plan.taps);
      sums += plan.sums_panel();
    }
  }
}

// Where there are few tiles threads share each, by groups of taps; the tiles are transposed after
// that.
bool shares_tiles(const Plan& plan, int threads) {
  constexpr std::int64_t kTilesOfThread = 4;
  return threads > 1 && plan.tiles() < kTilesOfThread * threads;
}

void add_blocks(const RunArgs& args, const Plan& plan, const Range& blocks, const Memory& memory) {
  const bool shared = shares_tiles(plan, args.threads);
  const std::int64_t groups = plan.tap_groups();
  const std::int64_t parts = shared ? groups : 1;  // of a tile
  parallel_for(args.threads, plan.tiles() * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    Memory of_block = memory;
    for (std::int64_t i = blocks.begin; i < blocks.end; ++i) {
      const Block block = block_at(plan, i);
      for (std::int64_t part = begin; part < end; ++part) {
        const Tile tile = tile_at(plan, part / parts);
        const std::int64_t at = part % parts;
        add_block(plan, block, of_block, tile,
                  {.begin = at * groups / parts, .end = (at + 1) * groups / parts});
        if (i + 1 < plan.blocks || shared) continue;
        transpose_tile(plan, memory, tile, args.outputs[0].as<float>());
      }
      of_block.x += plan.packed_x();
      of_block.dy += plan.packed_dy();
    }
  });
}

void transpose_tiles(const RunArgs& args, const Plan& plan, const Memory& memory) {
  const std::int64_t grain = row_grain(plan.lines * plan.together * plan.sums_panel());
  parallel_for(args.threads, plan.tiles(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      transpose_tile(plan, memory, tile_at(plan, tile), args.outputs[0].as<float>());
    }
  });
}

// --- The table -----------------------------------------------------------------------------------

// Where few of a tile's sums are wasted, more than one tap shares what is packed, and that is
// little.
bool pays(const Plan& plan) {
  const std::int64_t tiles = plan.x_panels * plan.lanes * plan.dy_panels * plan.lines;
  return plan.taps > 1 && 4 * plan.in_channels * plan.out_channels >= 3 * tiles &&
         plan.window.out[2] <= kMostColumns && plan.packed_x() + plan.packed_dy() <= kMostOfBlock &&
         plan.x_panel / plan.lanes <= kMostOfPixel * plan.dy_panel / plan.lines;
}

bool supports(const PrepareArgs& args) {
  const auto& params = std::get<ConvParams>(args.params);
  const Shape& x = args.inputs[0].shape();
  const Shape& y = args.inputs[1].shape();
  if (params.window.rank > 2 || params.group != 1 || x.elements() == 0 || y.elements() == 0) {
    return false;
  }
  return args.outputs[0].elements() / (x[1] * y[1]) <= kMostTaps &&
         pays(plan_of(args.params, x, y));
}

Prepared prepare(const PrepareArgs& args) {
  const Plan plan = plan_of(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  const std::int64_t sums = plan.sums_in_result() ? 0 : plan.out_channels * plan.sums_row();
  const auto elements =
      static_cast<std::size_t>(plan.blocks_packed * (plan.packed_x() + plan.packed_dy()) + sums);
  return {.workspace_bytes = elements * sizeof(float), .state = std::make_shared<Plan>(plan)};
}

void run(const RunArgs& args) {
  const Plan& plan = *static_cast<const Plan*>(args.state);
  Memory memory;
  memory.x = static_cast<float*>(args.workspace);
  memory.dy = memory.x + plan.blocks_packed * plan.packed_x();
  memory.sums = plan.sums_in_result() ? args.outputs[0].as<float>()
                                      : memory.dy + plan.blocks_packed * plan.packed_dy();
  for (std::int64_t begin = 0; begin < plan.blocks; begin += plan.blocks_packed) {
    const Range blocks{.begin = begin, .end = std::min(begin + plan.blocks_packed, plan.blocks)};
    pack(args, plan, blocks, memory);
    add_blocks(args, plan, blocks, memory);
  }
  if (shares_tiles(plan, args.threads)) transpose_tiles(args, plan, memory);
}

}  // namespace

void add_conv_grad_weight_wide(KernelTable& table) {
  table.add(
      "ConvGradWeight", DType::kF32,
      {.name = "conv_grad_weight.wide", .supports = supports, .prepare = prepare, .run = run});
}

}  // namespace trainscope::cpu
