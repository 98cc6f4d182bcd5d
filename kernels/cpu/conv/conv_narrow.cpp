// Convolutions with at most eight out channels, and gradients by inputs of so few. oneDNN computes
// sixteen channels at once, whether there are so many or not; here the pixels of a row fill the
// registers instead, and the sums of up to six channels for one or two of these are formed
// together. Padding counts as zeros that are multiplied: a weight that is not finite spreads to the
// border.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kMostChannels = 8;
constexpr std::int64_t kMostTogether = 6;  // channels: with two registers of pixels 12 sums of 16

template <typename T>
using Lanes [[gnu::vector_size(32)]] = T;
template <typename T>
inline constexpr auto kLanes = static_cast<std::int64_t>(sizeof(Lanes<T>) / sizeof(T));

// A convolution at stride 1: out [out_channels, rows, columns] from in [in_channels, in_rows,
// in_columns], whose windows lie side by side, the first at the first pixel. The gradient by the
// input is one too: its `in` is dy with zeros around, its `out` is dx.
struct Planes {
  std::int64_t out_channels = 0;
  std::int64_t in_channels = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t kernel_rows = 0;
  std::int64_t kernel_columns = 0;

  std::int64_t in_rows() const { return rows + kernel_rows - 1; }
  std::int64_t in_columns() const { return columns + kernel_columns - 1; }
  std::int64_t taps() const { return kernel_rows * kernel_columns; }
  std::int64_t weights() const { return in_channels * taps() * out_channels; }
  std::int64_t together() const {
    return out_channels <= kMostTogether ? out_channels : (out_channels + 1) / 2;
  }
};

// x [N, C, H, W], w [M, C, kernel], y [N, M, H', W']
Support is_padded_image(const ConvParams& params, const Shape& x, const Shape& y) {
  const WindowParams& window = params.window;
  const Support image = is_image_at_stride_1(params, x, y);
  if (!image) return image;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t reach = window.kernel[axis] - 1;
    if (window.pad_begin[axis] > reach || window.pad_end[axis] > reach) {
      return {"windows that lie in the padding"};
    }
  }
  return {};
}

// `out_channels` and `out` are those of Planes.
template <typename T>
Support is_narrow(std::int64_t out_channels, const Shape& out) {
  if (out_channels > kMostChannels) return {"more than 8 channels whose sums are formed"};
  return supported_if(out[3] >= kLanes<T>, "rows shorter than a register");
}

Planes forward_planes(const ConvParams& params, const Shape& x, const Shape& y) {
  return {.out_channels = y[1],
          .in_channels = x[1],
          .rows = y[2],
          .columns = y[3],
          .kernel_rows = params.window.kernel[0],
          .kernel_columns = params.window.kernel[1]};
}
Planes gradient_planes(const ConvParams& params, const Shape& x, const Shape& y) {
  Planes planes = forward_planes(params, x, y);
  std::swap(planes.out_channels, planes.in_channels);
  planes.rows = x[2];
  planes.columns = x[3];
  return planes;
}

// Sums of kChannels channels for kVectors registers of pixels. `weights` [in_channels, taps,
// out_channels] begins at the first of these channels, `from` at the window of the first pixel.
template <std::int64_t kChannels, std::int64_t kVectors, typename T>
void sum_pixels(const Planes& p, const T* weights, const T* from, const T* bias, T* to) {
  Lanes<T> sums[kChannels][kVectors] = {};
  for (std::int64_t c = 0; c < p.in_channels; ++c) {
    for (std::int64_t ky = 0; ky < p.kernel_rows; ++ky) {
      const T* row = from + (c * p.in_rows() + ky) * p.in_columns();
      for (std::int64_t kx = 0; kx < p.kernel_columns; ++kx) {
        Lanes<T> pixels[kVectors];
        for (std::int64_t v = 0; v < kVectors; ++v) {
          std::memcpy(&pixels[v], row + kx + v * kLanes<T>, sizeof(pixels[v]));
        }
#pragma GCC unroll 6
        for (std::int64_t m = 0; m < kChannels; ++m) {
          for (std::int64_t v = 0; v < kVectors; ++v) sums[m][v] += weights[m] * pixels[v];
        }
        weights += p.out_channels;
      }
    }
  }
  for (std::int64_t m = 0; m < kChannels; ++m) {
    T* out = to + m * p.rows * p.columns;
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const Lanes<T> sum = sums[m][v] + bias[m];
      std::memcpy(out + v * kLanes<T>, &sum, sizeof(sum));
    }
  }
}

// The last registers of a row begin so that they end with it: some sums are formed twice.
template <std::int64_t kChannels, std::int64_t kVectors, typename T>
void sum_plane(const Planes& p, const T* weights, const T* in, const T* bias, T* out) {
  constexpr std::int64_t kWidth = kVectors * kLanes<T>;
  for (std::int64_t y = 0; y < p.rows; ++y) {
    for (std::int64_t x = 0; x < p.columns; x += kWidth) {
      const std::int64_t at = std::min(x, p.columns - kWidth);
      sum_pixels<kChannels, kVectors>(p, weights, in + y * p.in_columns() + at, bias,
                                      out + y * p.columns + at);
    }
  }
}

// Two registers at a time where that forms no more sums than one.
template <std::int64_t kChannels, typename T>
void sum_channels(const Planes& p, const T* weights, const T* in, const T* bias, T* out) {
  const bool two = p.columns >= 2 * kLanes<T> &&
                   round_up(p.columns, 2 * kLanes<T>) <= round_up(p.columns, kLanes<T>);
  (two ? sum_plane<kChannels, 2, T> : sum_plane<kChannels, 1, T>)(p, weights, in, bias, out);
}

// All channels of one example.
template <typename T>
void sum_example(const Planes& p, const T* weights, const T* in, const T* bias, T* out) {
  using Sum = void (*)(const Planes&, const T*, const T*, const T*, T*);
  constexpr std::array<Sum, kMostTogether> kSums = {sum_channels<1, T>, sum_channels<2, T>,
                                                    sum_channels<3, T>, sum_channels<4, T>,
                                                    sum_channels<5, T>, sum_channels<6, T>};
  for (std::int64_t m = 0; m < p.out_channels; m += p.together()) {
    const std::int64_t channels = std::min(p.together(), p.out_channels - m);
    kSums[static_cast<std::size_t>(channels - 1)](p, weights + m, in, bias + m,
                                                  out + m * p.rows * p.columns);
  }
}

// The workspace holds the weights in the order in which they are read, biases, and a padded example
// for each thread.
struct Pieces {
  std::int64_t weights = 0;
  std::int64_t example = 0;
  std::int64_t slots = 0;

  std::int64_t elements() const { return weights + kMostChannels + slots * example; }
};

Pieces pieces_of(const Planes& p, std::int64_t examples, int threads) {
  return {.weights = p.weights(),
          .example = p.in_channels * p.in_rows() * p.in_columns(),
          .slots = std::clamp<std::int64_t>(examples, 1, std::max(1, threads))};
}

template <typename T>
Prepared prepared(const Planes& p, std::int64_t examples, int threads) {
  const auto elements = static_cast<std::size_t>(pieces_of(p, examples, threads).elements());
  return {.workspace_bytes = elements * sizeof(T), .state = nullptr};
}

// The channels [in_channels, rows, columns] of an example with zeros around them; `up` rows and
// `left` columns are before them.
template <typename T>
const T* padded(const Planes& p, const T* from, const Spatial& size, std::int64_t up,
                std::int64_t left, T* to) {
  std::fill_n(to, p.in_channels * p.in_rows() * p.in_columns(), T{0});
  for (std::int64_t row = 0; row < p.in_channels * size[0]; ++row) {
    const std::int64_t at = row / size[0] * p.in_rows() + row % size[0] + up;
    std::copy_n(from + row * size[1], size[1], to + at * p.in_columns() + left);
  }
  return to;
}

// Every example of a batch; `stored_size` is the size of the input planes as stored, which begin at
// (up, left) of those with zeros around.
template <typename T>
struct BatchOfSums {
  const RunArgs& args;
  Planes planes;
  std::int64_t examples = 0;
  Spatial stored_size{};
  std::int64_t up = 0;
  std::int64_t left = 0;

  void run(const T* in, const T* weights, const T* bias, T* out) const {
    const Pieces pieces = pieces_of(planes, examples, args.threads);
    T* examples_padded = static_cast<T*>(args.workspace) + pieces.weights + kMostChannels;
    const std::int64_t stored = planes.in_channels * stored_size[0] * stored_size[1];
    const bool as_stored = stored == pieces.example;
    parallel_for(args.threads, pieces.slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        for (std::int64_t n = slot; n < examples; n += pieces.slots) {
          const T* from = in + n * stored;
          if (!as_stored) {
            from = padded(planes, from, stored_size, up, left,
                          examples_padded + slot * pieces.example);
          }
          sum_example(planes, weights, from, bias,
                      out + n * planes.out_channels * planes.rows * planes.columns);
        }
      }
    });
  }
};

template <typename T>
Support supports_forward(const PrepareArgs& args) {
  const Shape& y = args.outputs[0].shape();
  const Support image =
      is_padded_image(std::get<ConvParams>(args.params), args.inputs[0].shape(), y);
  return image ? is_narrow<T>(y[1], y) : image;
}
template <typename T>
Support supports_grad_input(const PrepareArgs& args) {
  const Shape& x = args.outputs[0].shape();
  const Support image =
      is_padded_image(std::get<ConvParams>(args.params), x, args.inputs[0].shape());
  return image ? is_narrow<T>(x[1], x) : image;
}

// Whole registers of pixels, zeros around the planes too; `stored` is the elements of an example as
// it is stored.
template <typename T>
Estimate estimated(const PrepareArgs& args, const Planes& p, std::int64_t stored) {
  const std::int64_t examples = args.outputs[0].shape()[0];
  const std::int64_t pixels = p.rows * round_up(p.columns, kLanes<T>);
  Work work = once_through(args, multiplied(2, examples, p.weights(), pixels));
  const std::int64_t example = p.in_channels * p.in_rows() * p.in_columns();
  work.add_passed_on(multiplied(sizeof(T), p.weights()));
  if (example != stored) work.add_passed_on(multiplied(sizeof(T), examples, example));
  return work.estimate();
}
template <typename T>
Estimate estimate_forward(const PrepareArgs& args, const Estimate&) {
  const Shape& x = args.inputs[0].shape();
  const auto& params = std::get<ConvParams>(args.params);
  return estimated<T>(args, forward_planes(params, x, args.outputs[0].shape()), x[1] * x[2] * x[3]);
}
template <typename T>
Estimate estimate_grad_input(const PrepareArgs& args, const Estimate&) {
  const Shape& y = args.inputs[0].shape();
  const auto& params = std::get<ConvParams>(args.params);
  return estimated<T>(args, gradient_planes(params, args.outputs[0].shape(), y),
                      y[1] * y[2] * y[3]);
}

template <typename T>
Prepared prepare_forward(const PrepareArgs& args) {
  const Shape& x = args.inputs[0].shape();
  const auto& params = std::get<ConvParams>(args.params);
  return prepared<T>(forward_planes(params, x, args.outputs[0].shape()), x[0], args.threads);
}
template <typename T>
Prepared prepare_grad_input(const PrepareArgs& args) {
  const Shape& x = args.outputs[0].shape();
  const auto& params = std::get<ConvParams>(args.params);
  return prepared<T>(gradient_planes(params, x, args.inputs[0].shape()), x[0], args.threads);
}

template <typename T>
void run_forward(const RunArgs& args) {
  const auto& params = std::get<ConvParams>(args.params);
  const Shape& x = args.inputs[0].shape();
  const Planes p = forward_planes(params, x, args.outputs[0].shape());
  const bool biased = args.inputs.size() > 2 && args.inputs[2].present;
  const T* w = args.inputs[1].as<const T>();  // [out_channels, in_channels, taps]
  T* weights = static_cast<T*>(args.workspace);
  for (std::int64_t i = 0; i < p.weights(); ++i) {
    weights[i] = w[i % p.out_channels * p.in_channels * p.taps() + i / p.out_channels];
  }
  T* bias = weights + p.weights();
  for (std::int64_t m = 0; m < p.out_channels; ++m)
    bias[m] = biased ? args.inputs[2].as<const T>()[m] : 0;
  BatchOfSums<T>{.args = args,
                 .planes = p,
                 .examples = x[0],
                 .stored_size = {x[2], x[3], 1},
                 .up = params.window.pad_begin[0],
                 .left = params.window.pad_begin[1]}
      .run(args.inputs[0].as<const T>(), weights, bias, args.outputs[0].as<T>());
}

// dx[c] = sum over m of w[m, c], its elements in reverse order, over dy[m] with zeros around.
template <typename T>
void run_grad_input(const RunArgs& args) {
  const auto& params = std::get<ConvParams>(args.params);
  const Shape& y = args.inputs[0].shape();
  const Planes p = gradient_planes(params, args.outputs[0].shape(), y);
  const T* w = args.inputs[1].as<const T>();  // [in_channels, out_channels, taps] of Planes
  T* weights = static_cast<T*>(args.workspace);
  for (std::int64_t i = 0; i < p.weights(); ++i) {
    const std::int64_t tap = i / p.out_channels % p.taps();
    const std::int64_t pair = i / p.out_channels / p.taps() * p.out_channels + i % p.out_channels;
    weights[i] = w[pair * p.taps() + p.taps() - 1 - tap];
  }
  T* bias = weights + p.weights();
  std::fill_n(bias, p.out_channels, T{0});
  BatchOfSums<T>{.args = args,
                 .planes = p,
                 .examples = y[0],
                 .stored_size = {y[2], y[3], 1},
                 .up = p.kernel_rows - 1 - params.window.pad_begin[0],
                 .left = p.kernel_columns - 1 - params.window.pad_begin[1]}
      .run(args.inputs[0].as<const T>(), weights, bias, args.outputs[0].as<T>());
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Conv", dtype,
            {.name = "conv.narrow",
             .supports = supports_forward<T>,
             .prepare = prepare_forward<T>,
             .run = run_forward<T>,
             .estimate = estimate_forward<T>});
  table.add("ConvGradInput", dtype,
            {.name = "conv_grad_input.narrow",
             .supports = supports_grad_input<T>,
             .prepare = prepare_grad_input<T>,
             .run = run_grad_input<T>,
             .estimate = estimate_grad_input<T>});
}

}  // namespace

void add_conv_narrow(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
}

}  // namespace trainscope::cpu
