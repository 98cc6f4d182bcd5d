// BatchNormRelu and its gradient: batch norm in training, addition of a residual and Relu in two
// passes over x. Parallel over channels.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/norm/channel_norm.h"
#include "kernels/cpu/norm/norm.h"

namespace trainscope::cpu {
namespace {

// The comparisons are written so that a NaN passes through, as in Relu. The loops over elements
// carry `omp simd` because a result may be in place, element for element.

template <typename C>
C relu(C x) {
  return x < C{0} ? C{0} : x;
}

// --- BatchNormRelu(x, scale, bias, mean, variance [, residual]) -> y, running mean, variance -----

// residual: null, or as long as x
template <typename T>
void write_row(const Line<Computed<T>> line, std::int64_t count, const T* x, const T* residual,
               T* y) {
  if (residual == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) store(y[i], relu(line.at(computed(x[i]))));
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    store(y[i], relu(line.at(computed(x[i])) + computed(residual[i])));
  }
}

template <typename T, RunningVariance kVariance>
void run_batch_norm_relu(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const auto* x = args.inputs[0].as<const T>();
  const auto* scale = args.inputs[1].as<const C>();
  const auto* bias = args.inputs[2].as<const C>();
  const bool adds = args.inputs.size() > 5 && args.inputs[5].present;
  const auto* residual = adds ? args.inputs[5].as<const T>() : nullptr;
  auto* y = args.outputs[0].as<T>();
  const ChannelLayout layout = channel_layout(args.inputs[0].shape());

  for_each_channel(args, layout, [&](std::int64_t c) {
    // Without a single element the running statistics stay what they are.
    Statistics batch{.mean = static_cast<double>(args.inputs[3].as<const C>()[c]),
                     .variance = static_cast<double>(args.inputs[4].as<const C>()[c])};
    if (layout.count() > 0) batch = channel_statistics(layout, x, c);
    update_running<C>(args, params.momentum, c,
                      statistics_to_keep<kVariance>(batch, layout.count()));
    const auto line = line_of<C>(batch, params.epsilon, scale[c], bias[c]);
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      const std::int64_t at = layout.at(n, c);
      write_row(line, layout.plane, x + at, adds ? residual + at : nullptr, y + at);
    }
  });
}

// --- BatchNormReluGrad(dy, y, x, scale) -> dx, dscale, dbias [, dresidual] -----------------------

// The gradient that Relu lets through.
template <typename T>
Computed<T> masked(T dy, T y) {
  using C = Computed<T>;
  return computed(y) <= C{0} ? C{0} : computed(dy);
}

template <typename T>
struct GradRow {
  const T* dy;
  const T* y;
  const T* x;
  T* dx;         // may be any of these
  T* dresidual;  // null, or may be another of them
};

template <typename T>
void write_gradients(const GradientLine<Computed<T>> line, std::int64_t count,
                     const GradRow<T> row) {
  const T* dy = row.dy;
  const T* y = row.y;
  const T* x = row.x;
  T* dx = row.dx;
  T* dresidual = row.dresidual;
  if (dresidual == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      store(dx[i], line.at(masked(dy[i], y[i]), computed(x[i])));
    }
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const Computed<T> gradient = masked(dy[i], y[i]);
    store(dx[i], line.at(gradient, computed(x[i])));
    store(dresidual[i], gradient);
  }
}

template <typename T>
ChannelGradient<Computed<T>> channel_gradient(const RunArgs& args, const ChannelLayout& layout,
                                              std::int64_t c) {
  if (layout.count() == 0) return {};
  const auto* dy = args.inputs[0].as<const T>();
  const auto* y = args.inputs[1].as<const T>();
  const auto* x = args.inputs[2].as<const T>();
  const auto shift = static_cast<double>(x[layout.at(0, c)]);
  const GradientSums sums = gradient_sums(
      layout, [dy, y](std::int64_t i) { return masked(dy[i], y[i]); }, x, c, shift);
  return training_gradient(sums, shift, static_cast<double>(layout.count()),
                           args.inputs[3].as<const Computed<T>>()[c],
                           std::get<NormParams>(args.params).epsilon);
}

template <typename T>
void run_batch_norm_relu_grad(const RunArgs& args) {
  using C = Computed<T>;
  const auto* dy = args.inputs[0].as<const T>();
  const auto* y = args.inputs[1].as<const T>();
  const auto* x = args.inputs[2].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const bool adds = args.outputs.size() > 3 && args.outputs[3].present;
  auto* dresidual = adds ? args.outputs[3].as<T>() : nullptr;
  const ChannelLayout layout = channel_layout(args.inputs[2].shape());

  for_each_channel(args, layout, [&](std::int64_t c) {
    const auto gradient = channel_gradient<T>(args, layout, c);
    keep<C>(args, 1, c, gradient.dscale);
    keep<C>(args, 2, c, gradient.dbias);
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      const std::int64_t at = layout.at(n, c);
      write_gradients(gradient.dx, layout.plane,
                      GradRow<T>{.dy = dy + at,
                                 .y = y + at,
                                 .x = x + at,
                                 .dx = dx + at,
                                 .dresidual = adds ? dresidual + at : nullptr});
    }
  });
}

template <typename T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add(
      "BatchNormRelu", dtype,
      {.name = "batch_norm_relu.own", .run = run_batch_norm_relu<T, RunningVariance::kPopulation>});
  table.add("SampleBatchNormRelu", dtype,
            {.name = "sample_batch_norm_relu.own",
             .run = run_batch_norm_relu<T, RunningVariance::kSample>});
  table.add("BatchNormReluGrad", dtype,
            {.name = "batch_norm_relu_grad.own", .run = run_batch_norm_relu_grad<T>});
}

}  // namespace

void add_norm_relu(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_own<BFloat16>(table);
  add_own<Float16>(table);
}

}  // namespace trainscope::cpu
