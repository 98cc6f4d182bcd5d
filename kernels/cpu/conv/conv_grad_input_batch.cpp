// Gradients by the inputs of convolutions with few in channels, at stride 1, where the rows are
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
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kMostChannels = 8;
constexpr std::int64_t kBlock = 8;  // side of what transpose_block() does

// The channels are those of the convolution: dy [examples, out_channels, out...], w [out_channels,
// in_channels, kernel...], dx [examples, in_channels, in...].
struct Planes {
  Window window;
  std::int64_t examples = 0;
  std::int64_t out_channels = 0;  // channels of dy
  std::int64_t in_channels = 0;   // channels of dx

  std::int64_t groups() const { return (examples + kTileLanes - 1) / kTileLanes; }
  std::int64_t examples_of(std::int64_t group) const {
    return std::min(kTileLanes, examples - group * kTileLanes);
  }
  std::int64_t weights() const { return out_channels * in_channels * window.taps(); }
  // Elements of a pixel of the transposed dy, and of all pixels.
  std::int64_t pixel() const { return out_channels * kTileLanes; }
  std::int64_t group() const { return window.out_elements() * pixel(); }
  // Channels of dx whose sums are formed together.
  std::int64_t together() const {
    return in_channels <= LaneTile::kMostSums ? in_channels : (in_channels + 1) / 2;
  }
  // One row of dx, examples last.
  std::int64_t row() const { return in_channels * window.in[2] * kTileLanes; }
};

Planes planes_of(const Params& params, const Shape& x, const Shape& y) {
  return {.window = window_of(std::get<ConvParams>(params).window, x, y),
          .examples = x[0],
          .out_channels = y[1],
          .in_channels = x[1]};
}

// The workspace holds the transposed weights, the transposed dy, and a row of dx for each thread.
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

// The transposed dy [groups, out..., out_channels, lanes]; lanes without an example are zeros.
void transpose_dy(const Planes& p, const RunArgs& args, float* to) {
  const auto* dy = args.inputs[0].as<const float>();
  const std::int64_t pixels = p.window.out_elements();
  const std::int64_t grain = row_grain(pixels * kTileLanes);
  parallel_for(args.threads, p.groups() * p.out_channels, grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t group = i / p.out_channels;
                   const std::int64_t channel = i % p.out_channels;
                   const std::int64_t examples = p.examples_of(group);
                   float* lines = to + group * p.group() + channel * kTileLanes;
                   transpose({.rows = examples,
                              .columns = pixels,
                              .from_row = p.out_channels * pixels,
                              .to_row = p.pixel()},
                             dy + (group * kTileLanes * p.out_channels + channel) * pixels, lines);
                   for (std::int64_t pixel = 0; pixel < pixels && examples < kTileLanes; ++pixel) {
                     std::fill(lines + pixel * p.pixel() + examples,
                               lines + pixel * p.pixel() + kTileLanes, 0.0F);
                   }
                 }
               });
}

// The transposed weights [in_channels / together, kernel..., out_channels, together], the elements
// of the kernel in reverse order.
void transpose_weights(const Planes& p, const float* w, float* transposed) {
  const std::int64_t taps = p.window.taps();
  for (std::int64_t first = 0; first < p.in_channels; first += p.together()) {
    const std::int64_t last = std::min(first + p.together(), p.in_channels);
    for (std::int64_t tap = taps - 1; tap >= 0; --tap) {
      for (std::int64_t m = 0; m < p.out_channels; ++m) {
        for (std::int64_t c = first; c < last; ++c)
          *transposed++ = w[(m * p.in_channels + c) * taps + tap];
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

// Row y of dx, examples last: [in_channels, in columns, lanes].
void sum_row(const Planes& p, std::int64_t y, const float* dy, const float* transposed,
             float* row) {
  const Window& w = p.window;
  const Range rows = windows_around(w, 1, y);
  // The first row of the reversed kernel that is used.
  const std::int64_t top = w.kernel[1] - 1 - y - w.pad[1] + rows.begin;
  for (std::int64_t x = 0; x < w.in[2]; ++x) {
    const Range columns = windows_around(w, 2, x);
    const std::int64_t left = w.kernel[2] - 1 - x - w.pad[2] + columns.begin;
    for (std::int64_t c = 0; c < p.in_channels; c += p.together()) {
      const std::int64_t sums = std::min(p.together(), p.in_channels - c);
      const std::int64_t set = p.out_channels * sums;
      lane_tile().sums[sums - 1](
          {.runs = rows.end - rows.begin,
           .steps = (columns.end - columns.begin) * p.out_channels,
           .factors = transposed + c * p.out_channels * w.taps() + (top * w.kernel[2] + left) * set,
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
  for (std::int64_t c = 0; c < p.in_channels; ++c) {
    transpose({.rows = w.in[2],
               .columns = examples,
               .from_row = kTileLanes,
               .to_row = p.in_channels * w.in_elements()},
              row + c * w.in[2] * kTileLanes, dx + c * w.in_elements());
  }
}

// Wins where the sums by rows of pixels (conv_narrow.cpp), whose registers of eight take the border
// and the end of a row too, would multiply half as much more.
Support pays(const Planes& p) {
  constexpr std::int64_t kRegister = 8;
  const std::int64_t by_rows = p.window.in[1] * round_up(p.window.in[2], kRegister);
  if (p.in_channels > kMostChannels) return {"more than 8 in channels"};
  if (2 * by_rows < 3 * p.window.out_elements()) return {"rows of pixels fill the registers"};
  return supported_if(4 * p.groups() * kTileLanes <= 5 * p.examples,
                      "the batch leaves a fifth of its registers of 32 examples empty");
}

Support supports(const PrepareArgs& args) {
  const Shape& x = args.outputs[0].shape();
  const Shape& y = args.inputs[0].shape();
  const Support image = is_image_at_stride_1(std::get<ConvParams>(args.params), x, y);
  return image ? pays(planes_of(args.params, x, y)) : image;
}

// Whole groups of examples, of each pixel the windows that it lies in: as many pairs as the windows
// have elements inside. dy is transposed before, and each row of dx after.
Estimate estimate(const PrepareArgs& args, const Estimate&) {
  const Planes p = planes_of(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  Work work = once_through(args, multiplied(2, pairs_inside(p.window), p.groups() * kTileLanes,
                                            p.out_channels, p.in_channels));
  const double rows = multiplied(p.groups(), p.window.in[1], p.row());
  work.add_passed_on(sizeof(float) *
                     (static_cast<double>(p.weights() + p.groups() * p.group()) + rows));
  return work.estimate();
}

Prepared prepare(const PrepareArgs& args) {
  const Planes p = planes_of(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  const auto elements = static_cast<std::size_t>(pieces_of(p, args.threads).elements());
  return {.workspace_bytes = elements * sizeof(float), .state = nullptr};
}

void run(const RunArgs& args) {
  const Planes p = planes_of(args.params, args.outputs[0].shape(), args.inputs[0].shape());
  const Pieces pieces = pieces_of(p, args.threads);
  auto* transposed = static_cast<float*>(args.workspace);
  float* dy = transposed + pieces.weights;
  float* rows = dy + pieces.dy;
  transpose_weights(p, args.inputs[1].as<const float>(), transposed);
  transpose_dy(p, args, dy);
  const Window& w = p.window;
  const std::int64_t tasks = p.groups() * w.in[1];
  parallel_for(args.threads, pieces.slots, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = begin; slot < end; ++slot) {
      float* row = rows + slot * pieces.row;
      for (std::int64_t i = slot; i < tasks; i += pieces.slots) {
        const std::int64_t group = i / w.in[1];
        const std::int64_t y = i % w.in[1];
        sum_row(p, y, dy + group * p.group(), transposed, row);
        store_row(p, p.examples_of(group), row,
                  args.outputs[0].as<float>() +
                      group * kTileLanes * p.in_channels * w.in_elements() + y * w.in[2]);
      }
    }
  });
}

}  // namespace

void add_conv_grad_input_batch(KernelTable& table) {
  table.add("ConvGradInput", DType::kF32,
            {.name = "conv_grad_input.batch",
             .supports = supports,
             .prepare = prepare,
             .run = run,
             .estimate = estimate});
}

}  // namespace trainscope::cpu
