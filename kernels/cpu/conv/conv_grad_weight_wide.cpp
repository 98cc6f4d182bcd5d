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
#include "kernels/cpu/conv/tap_plan.h"
#include "kernels/cpu/conv/tap_tile.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/gemm/gemm_pack.h"
#include "kernels/cpu/movement/transpose_block.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

struct Block {
  std::int64_t example = 0;
  std::int64_t examples = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
};

Block block_at(const TapPlan& plan, std::int64_t index) {
  const std::int64_t example = index / plan.strips * plan.block_examples;
  const std::int64_t row = index % plan.strips * plan.block_rows;
  return {.example = example,
          .examples = std::min(plan.block_examples, plan.examples - example),
          .row = row,
          .rows = std::min(plan.block_rows, plan.window.out[1] - row)};
}

// --- Packing -------------------------------------------------------------------------------------

void pack_dy(const TapPlan& plan, const Block& block, std::int64_t panel, const float* dy,
             float* to) {
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
void pack_row(const TapPlan& plan, std::int64_t channels, const float* from, float* to) {
  const Window& w = plan.window;
  const std::int64_t before = std::min(w.pad[2], plan.columns);
  const std::int64_t width = std::min(w.in[2], plan.columns - before);
  float* pixels = to + before * plan.lanes;
  std::fill(to, pixels, 0.0F);
  pack_panels<float>({from, w.in_elements(), 1}, channels, width, plan.lanes, pixels);
  std::fill(pixels + width * plan.lanes, to + plan.x_row(), 0.0F);
}

void pack_x(const TapPlan& plan, const Block& block, std::int64_t panel, const float* x,
            float* to) {
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
void pack(const RunArgs& args, const TapPlan& plan, const Range& blocks, const Memory& memory) {
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

Tile tile_at(const TapPlan& plan, std::int64_t index) {
  const std::int64_t dy = index % plan.dy_panels;
  const std::int64_t x = index / plan.dy_panels * plan.together;
  return {.dy = dy,
          .x = x,
          .panels = std::min(plan.together, plan.x_panels - x),
          .kept = std::min(plan.lines, plan.out_channels - dy * plan.lines)};
}

float* sums_of(const TapPlan& plan, const Memory& memory, const Tile& tile) {
  return memory.sums + tile.dy * plan.lines * plan.sums_row() + tile.x * plan.sums_panel();
}

// Groups [begin, end) of a tile's taps; `memory` begins at the block's panels.
void add_block(const TapPlan& plan, const Block& block, const Memory& memory, const Tile& tile,
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
void transpose_panel(const TapPlan& plan, std::int64_t channels, const float* sums, float* dw) {
  constexpr std::int64_t kSide = 8;
  float copy[TapPlan::kMostTaps * TapTile::kMostLanes];
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
void transpose_tile(const TapPlan& plan, const Memory& memory, const Tile& tile, float* dw) {
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
bool shares_tiles(const TapPlan& plan, int threads) {
  constexpr std::int64_t kTilesOfThread = 4;
  return threads > 1 && plan.tiles() < kTilesOfThread * threads;
}

void add_blocks(const RunArgs& args, const TapPlan& plan, const Range& blocks,
                const Memory& memory) {
  const bool shared = shares_tiles(plan, args.threads);
  const std::int64_t groups = plan.tap_groups();
  const std::int64_t chunks = shared ? groups : 1;  // of a tile
  parallel_for(args.threads, plan.tiles() * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    Memory of_block = memory;
    for (std::int64_t i = blocks.begin; i < blocks.end; ++i) {
      const Block block = block_at(plan, i);
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const Tile tile = tile_at(plan, chunk / chunks);
        const std::int64_t at = chunk % chunks;
        add_block(plan, block, of_block, tile,
                  {.begin = at * groups / chunks, .end = (at + 1) * groups / chunks});
        if (i + 1 < plan.blocks || shared) continue;
        transpose_tile(plan, memory, tile, args.outputs[0].as<float>());
      }
      of_block.x += plan.packed_x();
      of_block.dy += plan.packed_dy();
    }
  });
}

void transpose_tiles(const RunArgs& args, const TapPlan& plan, const Memory& memory) {
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
Support pays(const TapPlan& plan) {
  const std::int64_t tiles = plan.x_panels * plan.lanes * plan.dy_panels * plan.lines;
  if (plan.taps <= 1) return {"windows of one element are matmuls"};
  if (4 * plan.in_channels * plan.out_channels < 3 * tiles) {
    return {"the channels leave a quarter of its tiles empty"};
  }
  if (plan.window.out[2] > TapPlan::kMostColumns) return {"rows of more than 2048 pixels"};
  if (plan.packed_x() + plan.packed_dy() > TapPlan::kMostOfBlock)
    return {"a packed block above 8 MiB"};
  return supported_if(
      plan.x_panel / plan.lanes <= TapPlan::kMostOfPixel * plan.dy_panel / plan.lines,
      "windows far wider than what they read");
}

Support supports(const PrepareArgs& args) {
  const auto& params = std::get<ConvParams>(args.params);
  const Shape& x = args.inputs[0].shape();
  const Shape& y = args.inputs[1].shape();
  if (params.window.rank > 2) return {"windows of three axes"};
  if (params.group != 1) return {"channels in groups"};
  if (x.elements() == 0 || y.elements() == 0) return {"a tensor has no elements"};
  if (args.outputs[0].elements() / (x[1] * y[1]) > TapPlan::kMostTaps) {
    return {"windows of more than 64 elements"};
  }
  return pays(tap_plan_of(args.params, x, y));
}

// Whole tiles of lines, lanes and packed pixels; blocks are packed, and sums that do not fit the
// result are transposed into it.
Estimate estimate(const PrepareArgs& args, const Estimate&) {
  const TapPlan p = tap_plan_of(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  const double sums = multiplied(p.dy_panels * p.lines, p.sums_row());
  Work work = once_through(args, multiplied(2, sums, p.examples, p.window.out_elements()));
  work.add_passed_on(multiplied(sizeof(float), p.blocks, p.packed_x() + p.packed_dy()));
  work.add_passed_on(sizeof(float) * sums);
  return work.estimate();
}

Prepared prepare(const PrepareArgs& args) {
  const TapPlan plan = tap_plan_of(args.params, args.inputs[0].shape(), args.inputs[1].shape());
  const std::int64_t sums = plan.sums_in_result() ? 0 : plan.out_channels * plan.sums_row();
  const auto elements =
      static_cast<std::size_t>(plan.blocks_packed * (plan.packed_x() + plan.packed_dy()) + sums);
  return {.workspace_bytes = elements * sizeof(float), .state = std::make_shared<TapPlan>(plan)};
}

void run(const RunArgs& args) {
  const TapPlan& plan = *static_cast<const TapPlan*>(args.state);
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
  table.add("ConvGradWeight", DType::kF32,
            {.name = "conv_grad_weight.wide",
             .supports = supports,
             .prepare = prepare,
             .run = run,
             .estimate = estimate});
}

}  // namespace trainscope::cpu
