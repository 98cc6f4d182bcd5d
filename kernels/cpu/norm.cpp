// BatchNormalization, InstanceNormalization and their gradients, parallel over channels. Sums are
// formed in double.
#include "kernels/cpu/norm.h"

#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/parallel.h"

namespace trainscope::cpu {
namespace {

// x [batch, channels, plane]
struct Layout {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t plane = 1;

  std::int64_t count() const { return batch * plane; }  // elements of a channel
  // Offset of element 0 of channel c in example n.
  std::int64_t at(std::int64_t n, std::int64_t c) const { return (n * channels + c) * plane; }
};

Layout layout_of(const Shape& x) {
  Layout layout{.batch = x[0], .channels = x[1], .plane = 1};
  for (int axis = 2; axis < x.rank; ++axis) layout.plane *= x[axis];
  return layout;
}

template <class F>
void for_each_channel(const RunArgs& args, const Layout& layout, F&& f) {
  parallel_for(args.threads, layout.channels, row_grain(2 * layout.count()),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t c = begin; c < end; ++c) f(c);
               });
}

// Element c of an output that may be left out.
template <typename T>
void keep(const RunArgs& args, std::size_t output, std::int64_t c, double value) {
  if (output >= args.outputs.size() || !args.outputs[output].present) return;
  args.outputs[output].as<T>()[c] = static_cast<T>(value);
}

struct Statistics {
  double mean = 0.0;
  double variance = 0.0;  // of the population
};

// From sums of x - shift and its square; the shift is an element, so that nothing cancels.
Statistics statistics_from(double shift, double sum, double sum_of_squares, double count) {
  const double mean = sum / count;
  const double variance = sum_of_squares / count - mean * mean;
  // `variance > 0` would lose a NaN.
  return {.mean = shift + mean, .variance = variance < 0.0 ? 0.0 : variance};
}

template <typename T>
Statistics channel_statistics(const Layout& layout, const T* x, std::int64_t c) {
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

// y = (x - mean) * factor + bias
template <typename T>
struct Line {
  T mean = 0;
  T factor = 0;
  T bias = 0;

  void apply(std::int64_t count, const T* x, T* y) const {
    const Line line = *this;  // a copy that y cannot alias
    for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - line.mean) * line.factor + line.bias;
  }
};

template <typename T>
Line<T> line_of(const Statistics& used, double epsilon, T scale, T bias) {
  const double factor = static_cast<double>(scale) / std::sqrt(used.variance + epsilon);
  const auto mean = static_cast<T>(used.mean);
  // What rounding the mean to T leaves over goes into the bias.
  const double rest = factor * (used.mean - static_cast<double>(mean));
  return {.mean = mean,
          .factor = static_cast<T>(factor),
          .bias = static_cast<T>(static_cast<double>(bias) - rest)};
}

// --- BatchNormalization(x, scale, bias, mean, variance) -> y, running mean, running variance -----

template <typename T>
void update_running(const RunArgs& args, const NormParams& params, std::int64_t c,
                    const Statistics& batch) {
  const auto update = [&](std::size_t input, std::size_t output, double value) {
    const auto old = static_cast<double>(args.inputs[input].as<const T>()[c]);
    keep<T>(args, output, c, old * params.momentum + value * (1.0 - params.momentum));
  };
  update(3, 1, batch.mean);
  update(4, 2, batch.variance);
}

template <typename T>
void run_batch_norm(const RunArgs& args) {
  const auto& params = std::get<NormParams>(args.params);
  const auto* x = args.inputs[0].as<const T>();
  const auto* scale = args.inputs[1].as<const T>();
  const auto* bias = args.inputs[2].as<const T>();
  auto* y = args.outputs[0].as<T>();
  const Layout layout = layout_of(args.inputs[0].shape());

  for_each_channel(args, layout, [&](std::int64_t c) {
    // Without a single element the running statistics stay what they are.
    Statistics used{.mean = static_cast<double>(args.inputs[3].as<const T>()[c]),
                    .variance = static_cast<double>(args.inputs[4].as<const T>()[c])};
    if (params.training) {
      if (layout.count() > 0) used = channel_statistics(layout, x, c);
      update_running<T>(args, params, c, used);
    }
    const auto line = line_of<T>(used, params.epsilon, scale[c], bias[c]);
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      line.apply(layout.plane, x + layout.at(n, c), y + layout.at(n, c));
    }
  });
}

// --- BatchNormalizationGrad(dy, x, scale [, mean, variance]) -> dx, dscale, dbias ----------------
// The batch statistics are computed again from x, which has to be read anyway.

struct GradientSums {
  double dy = 0.0;    // sum of dy
  double dy_x = 0.0;  // sum of dy * (x - shift)
  double x = 0.0;     // sum of x - shift
  double xx = 0.0;    // sum of (x - shift)^2
};

template <typename T>
GradientSums gradient_sums(const Layout& layout, const T* dy, const T* x, std::int64_t c,
                           double shift) {
  double sum_dy = 0.0;
  double sum_dy_x = 0.0;
  double sum_x = 0.0;
  double sum_xx = 0.0;
  for (std::int64_t n = 0; n < layout.batch; ++n) {
    const T* dy_row = dy + layout.at(n, c);
    const T* x_row = x + layout.at(n, c);
#pragma omp simd reduction(+ : sum_dy, sum_dy_x, sum_x, sum_xx)
    for (std::int64_t i = 0; i < layout.plane; ++i) {
      const auto gradient = static_cast<double>(dy_row[i]);
      const double d = static_cast<double>(x_row[i]) - shift;
      sum_dy += gradient;
      sum_dy_x += gradient * d;
      sum_x += d;
      sum_xx += d * d;
    }
  }
  return {.dy = sum_dy, .dy_x = sum_dy_x, .x = sum_x, .xx = sum_xx};
}

// dx = by_dy * dy + by_x * (x - mean) + constant
struct InputGradient {
  double by_dy = 0.0;
  double by_x = 0.0;
  double constant = 0.0;
  double mean = 0.0;

  template <typename T>
  void apply(std::int64_t count, const T* dy, const T* x, T* dx) const {
    const auto a = static_cast<T>(by_dy);
    const auto b = static_cast<T>(by_x);
    const auto c = static_cast<T>(constant);
    const auto m = static_cast<T>(mean);
    for (std::int64_t i = 0; i < count; ++i) dx[i] = a * dy[i] + (b * (x[i] - m) + c);
  }
};

struct ChannelGradient {
  InputGradient dx;
  double dscale = 0.0;
  double dbias = 0.0;
};

// From the sums over `count` elements that were normalised with statistics of their own.
ChannelGradient training_gradient(const GradientSums& sums, double shift, double count,
                                  double scale, double epsilon) {
  const Statistics used = statistics_from(shift, sums.x, sums.xx, count);
  const double inverse = 1.0 / std::sqrt(used.variance + epsilon);
  const double dscale = inverse * (sums.dy_x - (used.mean - shift) * sums.dy);
  const double by_dy = scale * inverse;
  return {.dx = {.by_dy = by_dy,
                 .by_x = -by_dy * inverse * dscale / count,
                 .constant = -by_dy * sums.dy / count,
                 .mean = used.mean},
          .dscale = dscale,
          .dbias = sums.dy};
}

template <typename T>
ChannelGradient channel_gradient(const RunArgs& args, const Layout& layout, std::int64_t c) {
  const auto& params = std::get<NormParams>(args.params);
  if (layout.count() == 0) return {};
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  const auto scale = static_cast<double>(args.inputs[2].as<const T>()[c]);
  const auto shift = params.training ? static_cast<double>(x[layout.at(0, c)])
                                     : static_cast<double>(args.inputs[3].as<const T>()[c]);
  const GradientSums sums = gradient_sums(layout, dy, x, c, shift);
  if (params.training) {
    const auto count = static_cast<double>(layout.count());
    return training_gradient(sums, shift, count, scale, params.epsilon);
  }
  const auto variance = static_cast<double>(args.inputs[4].as<const T>()[c]);
  const double inverse = 1.0 / std::sqrt(variance + params.epsilon);
  return {.dx = {.by_dy = scale * inverse, .by_x = 0.0, .constant = 0.0, .mean = shift},
          .dscale = inverse * sums.dy_x,
          .dbias = sums.dy};
}

template <typename T>
void run_batch_norm_grad(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const Layout layout = layout_of(args.inputs[1].shape());

  for_each_channel(args, layout, [&](std::int64_t c) {
    const ChannelGradient gradient = channel_gradient<T>(args, layout, c);
    keep<T>(args, 1, c, gradient.dscale);
    keep<T>(args, 2, c, gradient.dbias);
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      const std::int64_t at = layout.at(n, c);
      gradient.dx.apply(layout.plane, dy + at, x + at, dx + at);
    }
  });
}

// --- InstanceNormalization(x, scale, bias), InstanceNormalizationGrad(dy, x, scale) --------------
// Each plane has statistics of its own: the planes are the channels of a batch of one.

Layout plane_layout(const Layout& layout) {
  return {.batch = 1, .channels = layout.batch * layout.channels, .plane = layout.plane};
}

template <typename T>
void run_instance_norm(const RunArgs& args) {
  const auto& params = std::get<NormParams>(args.params);
  const auto* x = args.inputs[0].as<const T>();
  const auto* scale = args.inputs[1].as<const T>();
  const auto* bias = args.inputs[2].as<const T>();
  auto* y = args.outputs[0].as<T>();
  const Layout layout = layout_of(args.inputs[0].shape());
  const Layout planes = plane_layout(layout);
  if (layout.plane == 0) return;

  for_each_channel(args, planes, [&](std::int64_t p) {
    const std::int64_t c = p % layout.channels;
    const Statistics own = channel_statistics(planes, x, p);
    const std::int64_t at = planes.at(0, p);
    line_of<T>(own, params.epsilon, scale[c], bias[c]).apply(layout.plane, x + at, y + at);
  });
}

template <typename T>
void run_instance_norm_grad(const RunArgs& args) {
  const auto& params = std::get<NormParams>(args.params);
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  const auto* scale = args.inputs[2].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const Layout layout = layout_of(args.inputs[1].shape());
  const Layout planes = plane_layout(layout);

  for_each_channel(args, layout, [&](std::int64_t c) {
    double dscale = 0.0;
    double dbias = 0.0;
    for (std::int64_t n = 0; n < layout.batch && layout.plane > 0; ++n) {
      const std::int64_t p = n * layout.channels + c;
      const std::int64_t at = planes.at(0, p);
      const auto shift = static_cast<double>(x[at]);
      const GradientSums sums = gradient_sums(planes, dy, x, p, shift);
      const ChannelGradient gradient =
          training_gradient(sums, shift, static_cast<double>(layout.plane),
                            static_cast<double>(scale[c]), params.epsilon);
      gradient.dx.apply(layout.plane, dy + at, x + at, dx + at);
      dscale += gradient.dscale;
      dbias += gradient.dbias;
    }
    keep<T>(args, 1, c, dscale);
    keep<T>(args, 2, c, dbias);
  });
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("BatchNormalization", dtype, {.name = "batch_norm.own", .run = run_batch_norm<T>});
  table.add("BatchNormalizationGrad", dtype,
            {.name = "batch_norm_grad.own", .run = run_batch_norm_grad<T>});
  table.add("InstanceNormalization", dtype,
            {.name = "instance_norm.own", .run = run_instance_norm<T>});
  table.add("InstanceNormalizationGrad", dtype,
            {.name = "instance_norm_grad.own", .run = run_instance_norm_grad<T>});
}

}  // namespace

void add_norm(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_layer_norm(table);
}

}  // namespace trainscope::cpu
