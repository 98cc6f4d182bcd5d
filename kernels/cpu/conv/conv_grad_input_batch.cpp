// Gradients by the inputs of convolutions with few input channels, at stride 1, where the rows are
// too short for registers or the border is a large part of them: the registers are filled with the
// examples of the batch instead. For that dy is transposed, examples last; then the sum of a pixel
// of dx takes the windows that it lies in and no others, and those of a row lie side by side.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/lane_tile.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/movement/transpose_block.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kMostChannels = 8;
constexpr std::int64_t kBlock = 8;  // side of what transpose_block() does

// dy [examples, read, out...], w [read, made, kernel...], dx [examples, made, in...]
struct Planes {
  Window window;
  std::int64_t examples = 0;
  std::int64_t read = 0;  // channels of dy
  std::int64_t made = 0;  // channels of dx

  std::int64_t groups() const { return (examples + kTileLanes - 1) / kTileLanes; }
  std::int64_t examples_of(std::int64_t group) const {
    return std::min(kTileLanes, examples - group * kTileLanes);
  }
  std::int64_t weights() const { return read * made * window.taps(); }
  // Elements of a pixel of the transposed dy, and of all pixels.
  std::int64_t pixel() const { return read * kTileLanes; }
  std::int64_t group() const { return window.out_elements() * pixel(); }
  // Channels of dx whose sums are formed together.
  std::int64_t together() const { return made <= LaneTile::kMostSums ? made : (made + 1) / 2; }
  // One row of dx, examples last.
  std::int64_t row() const { return made * window.in[2] * kTileLanes; }
};

Planes planes_of(const Params& params, const Shape& x, const Shape& y) {
  return {.window = window_of(std::get<ConvParams>(params).window, x, y),
          .examples = x[0],
          .read = y[1],
          .made = x[1]};
}

// Workspace: weights, the transposed dy, a row of dx for each thread.
struct Pieces {
  std::int64_t weights = 0;
  std::int64_t dy = 0;
  std::int64_t slots = 0;
  std::int64_t row = 0;

  std::int64_t elements() const { return weights + dy + slots * row; }
};
Pieces pieces_of(const Planes& p, int threads) {
  constexpr std::int64_t kLine = 64 / sizeof(float);
  return {.weights = round_up(p.weights(), kLine),
          .dy = p.groups() * p.group(),
          .slots = std::clamp<std::int64_t>(p.groups() * p.window.in[1], 1, std::max(1, threads)),
          .row = p.row()};
}

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t from_row = 0;
  std::int64_t to_row = 0;
};

// to[j * to_row + i] = from[i * from_row + j]. The last blocks end with the matrix: some elements
// are moved twice.
void transpose(const Matrix& m, const float* from, float* to) {
  if (m.rows < kBlock || m.columns < kBlock) {
    for (std::int64_t i = 0; i < m.rows; ++i) {
      for (std::int64_t j = 0; j < m.columns; ++j) to[j * m.to_row + i] = from[i * m.from_row + j];
    }
    return;
  }
  for (std::int64_t row = 0; row < m.rows; row += kBlock) {
    const std::int64_t i = std::min(row, m.rows - kBlock);
    for (std::int64_t column = 0; column < m.columns; column += kBlock) {
      const std::int64_t j = std::min(column, m.columns - kBlock);
      transpose_block(from + i * m.from_row + j, m.from_row, to + j * m.to_row + i, m.to_row);
    }
  }
}

// [groups, out..., read, lanes]; lanes without an example are zeros.
void transpose_dy(const Planes& p, const RunArgs& args, float* to) {
  const auto* dy = args.inputs[0].as<const float>();
  const std::int64_t pixels = p.window.out_elements();
  const std::int64_t grain = row_grain(pixels * kTileLanes);
  parallel_for(args.threads, p.groups() * p.read, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / p.read;
      const std::int64_t channel = i % p.read;
      const std::int64_t examples = p.examples_of(group);
      float* lines = to + group * p.group() + channel * kTileLanes;
      transpose(
          {.rows = examples, .columns = pixels, .from_row = p.read * pixels, .to_row = p.pixel()},
          dy + (group * kTileLanes * p.read + channel) * pixels, lines);
      for (std::int64_t pixel = 0; pixel < pixels && examples < kTileLanes; ++pixel) {
        std::fill(lines + pixel * p.pixel() + examples, lines + pixel * p.pixel() + kTileLanes,
                  0.0F);
      }
    }
  });
}

// The kernel turned, [made / together, kernel..., read, together].
void turn_weights(const Planes& p, const float* w, float* turned) {
  const std::int64_t taps = p.window.taps();
  for (std::int64_t first = 0; first < p.made; first += p.together()) {
    const std::int64_t last = std::min(first + p.together(), p.made);
    for (std::int64_t tap = taps - 1; tap >= 0; --tap) {
      for (std::int64_t m = 0; m < p.read; ++m) {
        for (std::int64_t c = first; c < last; ++c) *turned++ = w[(m * p.made + c) * taps + tap];
      }
    }
  }
}

// The windows along `axis` that pixel `at` lies in.
Range windows_around(const Window& w, std::size_t axis, std::int64_t at) {
  const std::int64_t last = at + w.pad[axis];
  return {.begin = std::max<std::int64_t>(0, last - w.kernel[axis] + 1),
          .end = std::min(w.out[axis], last + 1)};
}

// Row y of dx, examples last: [made, in columns, lanes].
void sum_row(const Planes& p, std::int64_t y, const float* dy, const float* turned, float* row) {
  const Window& w = p.window;
  const Range rows = windows_around(w, 1, y);
  // Of the turned kernel, the first row that is used.
  const std::int64_t top = w.kernel[1] - 1 - y - w.pad[1] + rows.begin;
  for (std::int64_t x = 0; x < w.in[2]; ++x) {
    const Range columns = windows_around(w, 2, x);
    const std::int64_t left = w.kernel[2] - 1 - x - w.pad[2] + columns.begin;
    for (std::int64_t c = 0; c < p.made; c += p.together()) {
      const std::int64_t sums = std::min(p.together(), p.made - c);
      const std::int64_t set = p.read * sums;
      lane_tile().sums[sums - 1](
          {.runs = rows.end - rows.begin,
           .steps = (columns.end - columns.begin) * p.read,
           .factors = turned + c * p.read * w.taps() + (top * w.kernel[2] + left) * set,
           .factor_run = w.kernel[2] * set,
           .lines = dy + (rows.begin * w.out[2] + columns.begin) * p.pixel(),
           .line_run = w.out[2] * p.pixel(),
           .to = row + (c * w.in[2] + x) * kTileLanes,
           .to_row = w.in[2] * kTileLanes});
    }
  }
}

// Puts row y of a group's examples where it belongs.
void store_row(const Planes& p, std::int64_t examples, const float* row, float* dx) {
  const Window& w = p.window;
  for (std::int64_t c = 0; c < p.made; ++c) {
    transpose({.rows = w.in[2],
               .columns = examples,
               .from_row = kTileLanes,
               .to_row = p.made * w.in_elements()},
              row + c * w.in[2] * kTileLanes, dx + c * w.in_elements());
  }
}

// Wins where the sums by rows of pixels (conv_narrow.cpp), whose registers of eight take the border
// and the end of a row too, would multiply half as much again.
bool pays(const Planes& p) {
  constexpr std::int64_t kRegister = 8;
  const std::int64_t by_rows = p.window.in[1] * round_up(p.window.in[2], kRegister);
  return p.made <= kMostChannels && 2 * by_rows >= 3 * p.window.out_elements() &&
         4 * p.groups() * kTileLanes <= 5 * p.examples;
}

bool supports(const PrepareArgs& args) {
  const auto& params = std::get<ConvParams>(args.params);
  const WindowParams& window = params.window;
  const Shape& x = args.outputs[0].shape();
  const Shape& y = args.inputs[0].shape();
  if (window.rank != 2 || params.group != 1 || x.elements() == 0 || y.elements() == 0) return false;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (window.stride[axis] != 1 || window.dilation[axis] != 1) return false;
  }
  return pays(planes_of(args.params, x, y));
}

Prepared prepare(const PrepareArgs& args) {
  const Planes p = planes_of(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  const auto elements = static_cast<std::size_t>(pieces_of(p, args.threads).elements());
  return {.workspace_bytes = elements * sizeof(float), .state = nullptr};
}

void run(const RunArgs& args) {
  const Planes p = planes_of(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  const Pieces pieces = pieces_of(p, args.threads);
  auto* turned = static_cast<float*>(args.workspace);
  float* dy = turned + pieces.weights;
  float* rows = dy + pieces.dy;
  turn_weights(p, args.inputs[1].as<const float>(), turned);
  transpose_dy(p, args, dy);
  const Window& w = p.window;
  const std::int64_t tasks = p.groups() * w.in[1];
  parallel_for(args.threads, pieces.slots, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = begin; slot < end; ++slot) {
      float* row = rows + slot * pieces.row;
      for (std::int64_t i = slot; i < tasks; i += pieces.slots) {
        const std::int64_t group = i / w.in[1];
        const std::int64_t y = i % w.in[1];
        sum_row(p, y, dy + group * p.group(), turned, row);
        store_row(p, p.examples_of(group), row,
                  args.outputs[0].as<float>() + group * kTileLanes * p.made * w.in_elements() +
                      y * w.in[2]);
      }
    }
  });
}

}  // namespace

void add_conv_grad_input_batch(KernelTable& table) {
  table.add(
      "ConvGradInput", DType::kF32,
      {.name = "conv_grad_input.batch", .supports = supports, .prepare = prepare, .run = run});
}

}  // namespace trainscope::cpu
