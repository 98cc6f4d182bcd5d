// BatchNormalization, InstanceNormalization and their gradients, parallel over channels. Sums are
// formed in double.
#include "kernels/cpu/norm/norm.h"

#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/norm/channel_norm.h"

namespace trainscope::cpu {
namespace {

// The loops over elements carry `omp simd` because a result may be in place, element for element.

template <typename T>
void normalize(const Line<T> line, std::int64_t count, const T* x, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = line.at(x[i]);
}

template <typename T>
void apply_gradient(const GradientLine<T> line, std::int64_t count, const T* dy, const T* x,
                    T* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = line.at(dy[i], x[i]);
}

template <typename T>
GradientSums sums_of(const ChannelLayout& layout, const T* dy, const T* x, std::int64_t c,
                     double shift) {
  return gradient_sums(
      layout, [dy](std::int64_t i) { return dy[i]; }, x, c, shift);
}

// --- BatchNormalization(x, scale, bias, mean, variance) -> y, running mean, running variance -----

template <typename T, RunningVariance kVariance>
void run_batch_norm(const RunArgs& args) {
  const auto& params = std::get<NormParams>(args.params);
  const auto* x = args.inputs[0].as<const T>();
  const auto* scale = args.inputs[1].as<const T>();
  const auto* bias = args.inputs[2].as<const T>();
  auto* y = args.outputs[0].as<T>();
  const ChannelLayout layout = channel_layout(args.inputs[0].shape());

  for_each_channel(args, layout, [&](std::int64_t c) {
    // Without a single element the running statistics stay what they are.
    Statistics used{.mean = static_cast<double>(args.inputs[3].as<const T>()[c]),
                    .variance = static_cast<double>(args.inputs[4].as<const T>()[c])};
    if (params.training) {
      if (layout.count() > 0) used = channel_statistics(layout, x, c);
      update_running<T>(args, params.momentum, c,
                        statistics_to_keep<kVariance>(used, layout.count()));
    }
    const auto line = line_of<T>(used, params.epsilon, scale[c], bias[c]);
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      normalize(line, layout.plane, x + layout.at(n, c), y + layout.at(n, c));
    }
  });
}

// --- BatchNormalizationGrad(dy, x, scale [, mean, variance]) -> dx, dscale, dbias ----------------

template <typename T>
ChannelGradient<T> channel_gradient(const RunArgs& args, const ChannelLayout& layout,
                                    std::int64_t c) {
  const auto& params = std::get<NormParams>(args.params);
  if (layout.count() == 0) return {};
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  const T scale = args.inputs[2].as<const T>()[c];
  const auto shift = params.training ? static_cast<double>(x[layout.at(0, c)])
                                     : static_cast<double>(args.inputs[3].as<const T>()[c]);
  const GradientSums sums = sums_of(layout, dy, x, c, shift);
  if (params.training) {
    const auto count = static_cast<double>(layout.count());
    return training_gradient(sums, shift, count, scale, params.epsilon);
  }
  const auto variance = static_cast<double>(args.inputs[4].as<const T>()[c]);
  const double inverse = 1.0 / std::sqrt(variance + params.epsilon);
  return {.dx = {.by_dy = static_cast<T>(static_cast<double>(scale) * inverse)},
          .dscale = inverse * sums.dy_x,
          .dbias = sums.dy};
}

template <typename T>
void run_batch_norm_grad(const RunArgs& args) {
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const ChannelLayout layout = channel_layout(args.inputs[1].shape());

  for_each_channel(args, layout, [&](std::int64_t c) {
    const ChannelGradient gradient = channel_gradient<T>(args, layout, c);
    keep<T>(args, 1, c, gradient.dscale);
    keep<T>(args, 2, c, gradient.dbias);
    for (std::int64_t n = 0; n < layout.batch; ++n) {
      const std::int64_t at = layout.at(n, c);
      apply_gradient(gradient.dx, layout.plane, dy + at, x + at, dx + at);
    }
  });
}

// --- InstanceNormalization(x, scale, bias), InstanceNormalizationGrad(dy, x, scale) --------------
// Each plane has statistics of its own: the planes are the channels of a batch of one.

ChannelLayout plane_layout(const ChannelLayout& layout) {
  return {.batch = 1, .channels = layout.batch * layout.channels, .plane = layout.plane};
}

template <typename T>
void run_instance_norm(const RunArgs& args) {
  const auto& params = std::get<NormParams>(args.params);
  const auto* x = args.inputs[0].as<const T>();
  const auto* scale = args.inputs[1].as<const T>();
  const auto* bias = args.inputs[2].as<const T>();
  auto* y = args.outputs[0].as<T>();
  const ChannelLayout layout = channel_layout(args.inputs[0].shape());
  const ChannelLayout planes = plane_layout(layout);
  if (layout.plane == 0) return;

  for_each_channel(args, planes, [&](std::int64_t p) {
    const std::int64_t c = p % layout.channels;
    const Statistics own = channel_statistics(planes, x, p);
    const std::int64_t at = planes.at(0, p);
    normalize(line_of<T>(own, params.epsilon, scale[c], bias[c]), layout.plane, x + at, y + at);
  });
}

template <typename T>
void run_instance_norm_grad(const RunArgs& args) {
  const auto& params = std::get<NormParams>(args.params);
  const auto* dy = args.inputs[0].as<const T>();
  const auto* x = args.inputs[1].as<const T>();
  const auto* scale = args.inputs[2].as<const T>();
  auto* dx = args.outputs[0].as<T>();
  const ChannelLayout layout = channel_layout(args.inputs[1].shape());
  const ChannelLayout planes = plane_layout(layout);

  for_each_channel(args, layout, [&](std::int64_t c) {
    double dscale = 0.0;
    double dbias = 0.0;
    for (std::int64_t n = 0; n < layout.batch && layout.plane > 0; ++n) {
      const std::int64_t p = n * layout.channels + c;
      const std::int64_t at = planes.at(0, p);
      const auto shift = static_cast<double>(x[at]);
      const ChannelGradient gradient =
          training_gradient(sums_of(planes, dy, x, p, shift), shift,
                            static_cast<double>(layout.plane), scale[c], params.epsilon);
      apply_gradient(gradient.dx, layout.plane, dy + at, x + at, dx + at);
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
  table.add("BatchNormalization", dtype,
            {.name = "batch_norm.own", .run = run_batch_norm<T, RunningVariance::kPopulation>});
  table.add("SampleBatchNormalization", dtype,
            {.name = "sample_batch_norm.own", .run = run_batch_norm<T, RunningVariance::kSample>});
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
  add_norm_relu(table);
  add_layer_norm(table);
}

}  // namespace trainscope::cpu
