// The gradients of BatchNormalization and of BatchNormRelu. One kernel sums parts of channels, a
// second one adds the parts up and writes dx.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/norm/channel_norm.h"
#include "kernels/cuda/norm/norm.h"

namespace trainscope::cuda {
namespace {

// dy [, y], x, scale [, mean, variance] -> dx, dscale, dbias [, dresidual]
template <typename T>
struct BatchNormGrad {
  ChannelLayout layout;
  ChannelParts parts;
  const T* dy;
  const T* y;  // of BatchNormRelu, else null
  const T* x;
  const Computed<T>* scale;
  const Computed<T>* mean;      // null in training
  const Computed<T>* variance;  // null in training
  T* dx;                        // may be dy, y or x
  T* dresidual;                 // or null, may be another of them
  Computed<T>* dscale;          // or null
  Computed<T>* dbias;           // or null
  ChannelSums* sums;            // [channels, parts]
  double epsilon;

  // The gradients that Relu lets through.
  template <int kWidth>
  __device__ Pack<T, kWidth> gradients(std::int64_t at) const {
    using C = Computed<T>;
    Pack<T, kWidth> passed = pack_at<kWidth>(dy, at);
    if (y == nullptr) return passed;
    const auto results = pack_at<kWidth>(y, at);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (static_cast<C>(results.values[k]) <= C{0}) passed.values[k] = static_cast<T>(C{0});
    }
    return passed;
  }
};

// Bytes: dy, y and x read once, the shift by each thread; 40 of sums a part written. FLOPs: 7 an
// element, in f64.
template <int kWidth, typename T>
__global__ void __launch_bounds__(kTeamThreads) sum_channel_gradients(const BatchNormGrad<T> a) {
  const OwnPart own = own_part(a.layout, a.parts);
  const double shift = a.mean != nullptr ? static_cast<double>(a.mean[own.channel])
                                         : static_cast<double>(a.x[a.layout.at(own.channel, 0)]);
  double sums[4] = {0.0, 0.0, 0.0, 0.0};
  for (std::int64_t i = own.begin + threadIdx.x * kWidth; i < own.end; i += blockDim.x * kWidth) {
    const std::int64_t at = a.layout.at(own.channel, i);
    const auto gradients = a.template gradients<kWidth>(at);
    const auto x = pack_at<kWidth>(a.x, at);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const auto gradient = static_cast<double>(gradients.values[k]);
      const double d = static_cast<double>(x.values[k]) - shift;
      sums[0] += d;
      sums[1] = std::fma(d, d, sums[1]);
      sums[2] += gradient;
      sums[3] = std::fma(gradient, d, sums[3]);
    }
  }
  block_sums(sums);
  if (threadIdx.x == 0) a.sums[blockIdx.x] = {sums[0], sums[1], sums[2], sums[3], shift};
}

template <typename T>
__device__ ChannelGradient<Computed<T>> channel_gradient(const BatchNormGrad<T>& a,
                                                         std::int64_t c) {
  using C = Computed<T>;
  const ChannelSums sums = add_parts(a.sums, a.parts, c);
  if (a.mean == nullptr) {
    const auto count = static_cast<double>(a.layout.count());
    return training_gradient<C>(sums, count, a.scale[c], a.epsilon);
  }
  const double inverse = 1.0 / std::sqrt(static_cast<double>(a.variance[c]) + a.epsilon);
  const double by_dy = static_cast<double>(a.scale[c]) * inverse;
  return {{static_cast<C>(by_dy), C{0}, C{0}, C{0}}, inverse * sums.dy_x, sums.dy};
}

// Bytes: dy, y and x read once, dx and dresidual written once; by one thread of each block the
// scale and the sums of the channel's parts (40 of the first, 32 of each other).
template <int kWidth, typename T>
__global__ void __launch_bounds__(kTeamThreads) write_channel_gradients(const BatchNormGrad<T> a) {
  using C = Computed<T>;
  TRAINSCOPE_SHARED(GradientLine<C>, shared_line, 1);
  const OwnPart own = own_part(a.layout, a.parts);
  if (threadIdx.x == 0) {
    ChannelGradient<C> gradient{{C{0}, C{0}, C{0}, C{0}}, 0.0, 0.0};
    if (a.layout.count() > 0) gradient = channel_gradient(a, own.channel);
    shared_line[0] = gradient.dx;
    if (own.part == 0) {
      keep_at(a.dscale, own.channel, gradient.dscale);
      keep_at(a.dbias, own.channel, gradient.dbias);
    }
  }
  __syncthreads();
  const GradientLine<C> line = shared_line[0];
  for (std::int64_t i = own.begin + threadIdx.x * kWidth; i < own.end; i += blockDim.x * kWidth) {
    const std::int64_t at = a.layout.at(own.channel, i);
    const auto gradients = a.template gradients<kWidth>(at);
    const auto x = pack_at<kWidth>(a.x, at);
    Pack<T, kWidth> dx;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      dx.values[k] =
          static_cast<T>(line.at(static_cast<C>(gradients.values[k]), static_cast<C>(x.values[k])));
    }
    put_pack<kWidth>(a.dx, at, dx);
    if (a.dresidual != nullptr) put_pack<kWidth>(a.dresidual, at, gradients);
  }
}

template <typename T>
void launch_gradients(const CallContext& call, const BatchNormGrad<T>& norm) {
  const Grid grid = channel_grid(norm.layout, norm.parts);
  with_packs<T>(norm.layout, {norm.dy, norm.y, norm.x, norm.dx, norm.dresidual},
                [&]<int kWidth>(PackOf<kWidth>) {
                  if (norm.layout.count() > 0) {
                    launch(call, grid, sum_channel_gradients<kWidth, T>, norm);
                  }
                  launch(call, grid, write_channel_gradients<kWidth, T>, norm);
                });
}

Prepared prepare_batch_norm_grad(const PrepareArgs& args) {
  return {.workspace_bytes = channel_sum_bytes(channel_layout(args.inputs[0].shape())),
          .state = nullptr};
}

// dy, x, scale [, mean, variance] -> dx, dscale, dbias
template <typename T>
void run_batch_norm_grad(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const ChannelLayout layout = channel_layout(args.inputs[1].shape());
  const bool given = !params.training;
  launch_gradients(args.call,
                   BatchNormGrad<T>{.layout = layout,
                                    .parts = channel_parts(layout),
                                    .dy = args.inputs[0].as<const T>(),
                                    .y = nullptr,
                                    .x = args.inputs[1].as<const T>(),
                                    .scale = args.inputs[2].as<const C>(),
                                    .mean = given ? args.inputs[3].as<const C>() : nullptr,
                                    .variance = given ? args.inputs[4].as<const C>() : nullptr,
                                    .dx = args.outputs[0].as<T>(),
                                    .dresidual = nullptr,
                                    .dscale = data_or_null<C>(args.outputs, 1),
                                    .dbias = data_or_null<C>(args.outputs, 2),
                                    .sums = static_cast<ChannelSums*>(args.workspace),
                                    .epsilon = params.epsilon});
}

// dy, y, x, scale -> dx, dscale, dbias [, dresidual]
template <typename T>
void run_batch_norm_relu_grad(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const ChannelLayout layout = channel_layout(args.inputs[2].shape());
  launch_gradients(args.call, BatchNormGrad<T>{.layout = layout,
                                               .parts = channel_parts(layout),
                                               .dy = args.inputs[0].as<const T>(),
                                               .y = args.inputs[1].as<const T>(),
                                               .x = args.inputs[2].as<const T>(),
                                               .scale = args.inputs[3].as<const C>(),
                                               .mean = nullptr,
                                               .variance = nullptr,
                                               .dx = args.outputs[0].as<T>(),
                                               .dresidual = data_or_null<T>(args.outputs, 3),
                                               .dscale = data_or_null<C>(args.outputs, 1),
                                               .dbias = data_or_null<C>(args.outputs, 2),
                                               .sums = static_cast<ChannelSums*>(args.workspace),
                                               .epsilon = params.epsilon});
}

template <typename T>
void add_relu_grad_for(KernelTable& table) {
  table.add("BatchNormReluGrad", kDTypeOf<T>,
            {.name = "batch_norm_relu_grad.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_batch_norm_grad,
             .run = run_batch_norm_relu_grad<T>});
}

}  // namespace

void add_norm_grad(KernelTable& table) {
  table.add("BatchNormalizationGrad", DType::kF32,
            {.name = "batch_norm_grad.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_batch_norm_grad,
             .run = run_batch_norm_grad<float>});
  add_relu_grad_for<float>(table);
  add_relu_grad_for<BFloat16>(table);
  add_relu_grad_for<Float16>(table);
}

}  // namespace trainscope::cuda
