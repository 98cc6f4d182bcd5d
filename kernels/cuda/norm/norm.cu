// BatchNormalization, and BatchNormRelu, which adds a residual and applies Relu in the same pass.
// One kernel sums parts of channels, a second one adds the parts up and normalises.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/norm/channel_norm.h"
#include "kernels/cuda/norm/norm.h"

namespace trainscope::cuda {
namespace {

// What the running variance becomes part of.
enum class RunningVariance : std::uint8_t {
  kPopulation,  // ONNX: squares divided by the number of elements
  kSample,      // PyTorch: by one less
};

enum class Ending : std::uint8_t { kNone, kRelu };

// x, scale, bias, mean, variance [, residual] -> y, running mean, running variance
template <typename T>
struct BatchNorm {
  ChannelLayout layout;
  ChannelParts parts;
  const T* x;
  const Computed<T>* scale;
  const Computed<T>* bias;
  const Computed<T>* mean;
  const Computed<T>* variance;
  const T* residual;              // or null
  T* y;                           // may be x or the residual
  Computed<T>* running_mean;      // or null, may be `mean`
  Computed<T>* running_variance;  // or null, may be `variance`
  ChannelSums* sums;              // [channels, parts]
  double epsilon;
  double momentum;
  bool training;
};

// Bytes: x read once, the shift by each thread; 40 of sums a part written. FLOPs: 4 an element, in
// f64. The shift is kept with the sums, because y may take the place of x.
template <int kWidth, typename T>
__global__ void __launch_bounds__(kTeamThreads) sum_channels(const BatchNorm<T> a) {
  const OwnPart own = own_part(a.layout, a.parts);
  const double shift =
      a.layout.count() == 0 ? 0.0 : static_cast<double>(a.x[a.layout.at(own.channel, 0)]);
  double sums[2] = {0.0, 0.0};
  for (std::int64_t i = own.begin + threadIdx.x * kWidth; i < own.end; i += blockDim.x * kWidth) {
    const auto x = pack_at<kWidth>(a.x, a.layout.at(own.channel, i));
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const double d = static_cast<double>(x.values[k]) - shift;
      sums[0] += d;
      sums[1] = std::fma(d, d, sums[1]);
    }
  }
  block_sums(sums);
  if (threadIdx.x == 0) a.sums[blockIdx.x] = {sums[0], sums[1], 0.0, 0.0, shift};
}

// The part of one thread of the grid: running statistics of its channel.
template <typename T, RunningVariance kVariance>
__device__ void update_running(const BatchNorm<T>& a, std::int64_t channel, double old_mean,
                               double old_variance, ChannelStatistics batch) {
  const auto count = static_cast<double>(a.layout.count());
  // Of a single element the sample has no variance, and the population's stays.
  if (kVariance == RunningVariance::kSample && a.layout.count() > 1) {
    batch.variance *= count / (count - 1.0);
  }
  const double rest = 1.0 - a.momentum;
  keep_at(a.running_mean, channel, old_mean * a.momentum + batch.mean * rest);
  keep_at(a.running_variance, channel, old_variance * a.momentum + batch.variance * rest);
}

// Bytes: x and the residual read once, y written once; by one thread of each block scale, bias and
// the sums of the channel's parts (24 of the first, 16 of each other). FLOPs: 2 an element, 1 more
// for the residual.
template <int kWidth, typename T, RunningVariance kVariance, Ending kEnding>
__global__ void __launch_bounds__(kTeamThreads) normalize_channels(const BatchNorm<T> a) {
  using C = Computed<T>;
  TRAINSCOPE_SHARED(NormLine<C>, shared_line, 1);
  const OwnPart own = own_part(a.layout, a.parts);
  const std::int64_t c = own.channel;
  if (threadIdx.x == 0) {
    // Without a single element the running statistics stay what they are. Only the first part's
    // block may read them: it is the one that overwrites them.
    const bool given = !a.training || a.layout.count() == 0;
    const bool reads = given || own.part == 0;
    const double old_mean = reads ? static_cast<double>(a.mean[c]) : 0.0;
    const double old_variance = reads ? static_cast<double>(a.variance[c]) : 0.0;
    ChannelStatistics used{old_mean, old_variance};
    if (!given) {
      used = statistics_from(add_parts(a.sums, a.parts, c), static_cast<double>(a.layout.count()));
    }
    if (a.training && own.part == 0) {
      update_running<T, kVariance>(a, c, old_mean, old_variance, used);
    }
    shared_line[0] = norm_line<C>(used, a.epsilon, a.scale[c], a.bias[c]);
  }
  __syncthreads();
  const NormLine<C> line = shared_line[0];
  for (std::int64_t i = own.begin + threadIdx.x * kWidth; i < own.end; i += blockDim.x * kWidth) {
    const std::int64_t at = a.layout.at(c, i);
    const auto x = pack_at<kWidth>(a.x, at);
    Pack<T, kWidth> residual{};
    if (a.residual != nullptr) residual = pack_at<kWidth>(a.residual, at);
    Pack<T, kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      C y = line.at(static_cast<C>(x.values[k]));
      if (a.residual != nullptr) y += static_cast<C>(residual.values[k]);
      // A NaN passes through.
      if (kEnding == Ending::kRelu) y = y < C{0} ? C{0} : y;
      result.values[k] = static_cast<T>(y);
    }
    put_pack<kWidth>(a.y, at, result);
  }
}

Prepared prepare_batch_norm(const PrepareArgs& args) {
  return {.workspace_bytes = channel_sum_bytes(channel_layout(args.inputs[0].shape())),
          .state = nullptr};
}

template <typename T, RunningVariance kVariance, Ending kEnding>
void run_batch_norm(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const ChannelLayout layout = channel_layout(args.inputs[0].shape());
  const bool training = params.training || kEnding == Ending::kRelu;
  const BatchNorm<T> norm{.layout = layout,
                          .parts = channel_parts(layout),
                          .x = args.inputs[0].as<const T>(),
                          .scale = args.inputs[1].as<const C>(),
                          .bias = args.inputs[2].as<const C>(),
                          .mean = args.inputs[3].as<const C>(),
                          .variance = args.inputs[4].as<const C>(),
                          .residual = data_or_null<const T>(args.inputs, 5),
                          .y = args.outputs[0].as<T>(),
                          .running_mean = data_or_null<C>(args.outputs, 1),
                          .running_variance = data_or_null<C>(args.outputs, 2),
                          .sums = static_cast<ChannelSums*>(args.workspace),
                          .epsilon = params.epsilon,
                          .momentum = params.momentum,
                          .training = training};
  const Grid grid = channel_grid(layout, norm.parts);
  with_packs<T>(layout, {norm.x, norm.residual, norm.y}, [&]<int kWidth>(PackOf<kWidth>) {
    if (training && layout.count() > 0) launch(args.call, grid, sum_channels<kWidth, T>, norm);
    launch(args.call, grid, normalize_channels<kWidth, T, kVariance, kEnding>, norm);
  });
}

template <typename T>
void add_batch_norm(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("BatchNormalization", dtype,
            {.name = "batch_norm.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_batch_norm,
             .run = run_batch_norm<T, RunningVariance::kPopulation, Ending::kNone>});
  table.add("SampleBatchNormalization", dtype,
            {.name = "sample_batch_norm.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_batch_norm,
             .run = run_batch_norm<T, RunningVariance::kSample, Ending::kNone>});
}

template <typename T>
void add_batch_norm_relu(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("BatchNormRelu", dtype,
            {.name = "batch_norm_relu.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_batch_norm,
             .run = run_batch_norm<T, RunningVariance::kPopulation, Ending::kRelu>});
  table.add("SampleBatchNormRelu", dtype,
            {.name = "sample_batch_norm_relu.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_batch_norm,
             .run = run_batch_norm<T, RunningVariance::kSample, Ending::kRelu>});
}

}  // namespace

void add_norm(KernelTable& table) {
  add_batch_norm<float>(table);
  add_batch_norm_relu<float>(table);
  add_batch_norm_relu<BFloat16>(table);
  add_batch_norm_relu<Float16>(table);
  add_norm_grad(table);
  add_instance_norm(table);
  add_layer_norm(table);
}

}  // namespace trainscope::cuda
