// What normalisation of channels is made of: sums over a channel, formed in double, and what
// follows from them for its elements.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {

// x [batch, channels, plane]
struct ChannelLayout {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t plane = 1;

  std::int64_t count() const { return batch * plane; }  // elements of a channel
  // Offset of element 0 of channel c in example n.
  std::int64_t at(std::int64_t n, std::int64_t c) const { return (n * channels + c) * plane; }
};

inline ChannelLayout channel_layout(const Shape& x) {
  ChannelLayout layout{.batch = x[0], .channels = x[1], .plane = 1};
  for (int axis = 2; axis < x.rank; ++axis) layout.plane *= x[axis];
  return layout;
}

template <class F>
void for_each_channel(const RunArgs& args, const ChannelLayout& layout, F&& f) {
  parallel_for(args.threads, layout.channels, row_grain(2 * layout.count()),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t c = begin; c < end; ++c) f(c);
               });
}

// Element c of an output that may be left out.
template <typename C>
void keep(const RunArgs& args, std::size_t output, std::int64_t c, double value) {
  if (output >= args.outputs.size() || !args.outputs[output].present) return;
  args.outputs[output].as<C>()[c] = static_cast<C>(value);
}

// --- Forward -------------------------------------------------------------------------------------

struct Statistics {
  double mean = 0.0;
  double variance = 0.0;  // of the population
};

// From sums of x - shift and its square; the shift is an element, so that nothing cancels.
inline Statistics statistics_from(double shift, double sum, double sum_of_squares, double count) {
  const double mean = sum / count;
  const double variance = sum_of_squares / count - mean * mean;
  // `variance > 0` would lose a NaN.
  return {.mean = shift + mean, .variance = variance < 0.0 ? 0.0 : variance};
}

template <typename T>
Statistics channel_statistics(const ChannelLayout& layout, const T* x, std::int64_t c) {
  const auto shift = static_cast<double>(x[layout.at(0, c)]);
  double sum = 0.0;
  double sum_of_squares = 0.0;
  for (std::int64_t n = 0; n < layout.batch; ++n) {
    const T* row = x + layout.at(n, c);
#pragma omp simd reduction(+ : sum, sum_of_squares)
    for (std::int64_t i = 0; i < layout.plane; ++i) {
      const double d = static_cast<double>(row[i]) - shift;
      sum += d;
      sum_of_squares += d * d;
    }
  }
  return statistics_from(shift, sum, sum_of_squares, static_cast<double>(layout.count()));
}

// What the running variance becomes part of.
enum class RunningVariance : std::uint8_t {
  kPopulation,  // ONNX: squares divided by the number of elements
  kSample,      // PyTorch: by one less
};

// Of `count` elements; of a single one the sample has no variance, and the population's stays.
template <RunningVariance kVariance>
Statistics statistics_to_keep(Statistics batch, std::int64_t count) {
  if (kVariance == RunningVariance::kSample && count > 1) {
    batch.variance *= static_cast<double>(count) / static_cast<double>(count - 1);
  }
  return batch;
}

// Inputs 3 and 4, the running statistics, become outputs 1 and 2.
template <typename C>
void update_running(const RunArgs& args, double momentum, std::int64_t c, const Statistics& batch) {
  const auto update = [&](std::size_t input, std::size_t output, double value) {
    const auto old = static_cast<double>(args.inputs[input].as<const C>()[c]);
    keep<C>(args, output, c, old * momentum + value * (1.0 - momentum));
  };
  update(3, 1, batch.mean);
  update(4, 2, batch.variance);
}

// y = (x - mean) * factor + bias
template <typename C>
struct Line {
  C mean = 0;
  C factor = 0;
  C bias = 0;

  C at(C x) const { return (x - mean) * factor + bias; }
};

template <typename C>
Line<C> line_of(const Statistics& used, double epsilon, C scale, C bias) {
  const double factor = static_cast<double>(scale) / std::sqrt(used.variance + epsilon);
  const auto mean = static_cast<C>(used.mean);
  // What rounding the mean to C leaves over goes into the bias.
  const double rest = factor * (used.mean - static_cast<double>(mean));
  return {.mean = mean,
          .factor = static_cast<C>(factor),
          .bias = static_cast<C>(static_cast<double>(bias) - rest)};
}

// --- Backward: the statistics are recomputed from x, which has to be read anyway -----------------

struct GradientSums {
  double dy = 0.0;    // sum of dy
  double dy_x = 0.0;  // sum of dy * (x - shift)
  double x = 0.0;     // sum of x - shift
  double xx = 0.0;    // sum of (x - shift)^2
};

// dy(i): the gradient of element i of the result.
template <typename T, class Dy>
GradientSums gradient_sums(const ChannelLayout& layout, const Dy dy, const T* x, std::int64_t c,
                           double shift) {
  double sum_dy = 0.0;
  double sum_dy_x = 0.0;
  double sum_x = 0.0;
  double sum_xx = 0.0;
  for (std::int64_t n = 0; n < layout.batch; ++n) {
    const std::int64_t at = layout.at(n, c);
#pragma omp simd reduction(+ : sum_dy, sum_dy_x, sum_x, sum_xx)
    for (std::int64_t i = at; i < at + layout.plane; ++i) {
      const auto gradient = static_cast<double>(dy(i));
      const double d = static_cast<double>(x[i]) - shift;
      sum_dy += gradient;
      sum_dy_x += gradient * d;
      sum_x += d;
      sum_xx += d * d;
    }
  }
  return {.dy = sum_dy, .dy_x = sum_dy_x, .x = sum_x, .xx = sum_xx};
}

// dx = by_dy * dy + by_x * (x - mean) + constant
template <typename C>
struct GradientLine {
  C by_dy = 0;
  C by_x = 0;
  C constant = 0;
  C mean = 0;

  C at(C dy, C x) const { return by_dy * dy + (by_x * (x - mean) + constant); }
};

template <typename C>
struct ChannelGradient {
  GradientLine<C> dx;
  double dscale = 0.0;
  double dbias = 0.0;
};

// From the sums over `count` elements that were normalised with statistics of their own.
template <typename C>
ChannelGradient<C> training_gradient(const GradientSums& sums, double shift, double count, C scale,
                                     double epsilon) {
  const Statistics used = statistics_from(shift, sums.x, sums.xx, count);
  const double inverse = 1.0 / std::sqrt(used.variance + epsilon);
  const double dscale = inverse * (sums.dy_x - (used.mean - shift) * sums.dy);
  const double by_dy = static_cast<double>(scale) * inverse;
  return {.dx = {.by_dy = static_cast<C>(by_dy),
                 .by_x = static_cast<C>(-by_dy * inverse * dscale / count),
                 .constant = static_cast<C>(-by_dy * sums.dy / count),
                 .mean = static_cast<C>(used.mean)},
          .dscale = dscale,
          .dbias = sums.dy};
}

}  // namespace trainscope::cpu
