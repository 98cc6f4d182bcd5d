// InstanceNormalization and its gradient: each plane of an example's channel has statistics of its
// own, and a block computes it.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/norm/channel_norm.h"
#include "kernels/cuda/norm/norm.h"

namespace trainscope::cuda {
namespace {

// Sums over a plane [count], known to all threads; without dy those of x alone.
template <typename T>
__device__ ChannelSums plane_sums(const T* dy, const T* x, std::int64_t count) {
  const auto shift = static_cast<double>(x[0]);
  double sums[4] = {0.0, 0.0, 0.0, 0.0};
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const double gradient = dy == nullptr ? 0.0 : static_cast<double>(dy[i]);
    const double d = static_cast<double>(x[i]) - shift;
    sums[0] += d;
    sums[1] = std::fma(d, d, sums[1]);
    sums[2] += gradient;
    sums[3] = std::fma(gradient, d, sums[3]);
  }
  block_sums(sums);
  return {sums[0], sums[1], sums[2], sums[3], shift};
}

// Bytes: x read and y written once; the second reading comes from L1 or L2. y may be x: its first
// element is read by all threads before the barriers of the sums.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    normalize_planes(const T* x, const T* scale, const T* bias, const ChannelLayout layout,
                     double epsilon, T* y) {
  const std::int64_t c = std::int64_t{blockIdx.x} % layout.channels;
  const std::int64_t at = std::int64_t{blockIdx.x} * layout.plane;
  const ChannelSums sums = plane_sums<T>(nullptr, x + at, layout.plane);
  const ChannelStatistics own = statistics_from(sums, static_cast<double>(layout.plane));
  const NormLine<T> line = norm_line<T>(own, epsilon, scale[c], bias[c]);
  for (std::int64_t i = threadIdx.x; i < layout.plane; i += blockDim.x) {
    y[at + i] = line.at(x[at + i]);
  }
}

// dscale and dbias of one plane.
struct PlaneGradient {
  double dscale;
  double dbias;
};

// Bytes: dy and x read and dx, which may be one of them, written once.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    write_plane_gradients(const T* dy, const T* x, const T* scale, const ChannelLayout layout,
                          double epsilon, T* dx, PlaneGradient* planes) {
  const std::int64_t c = std::int64_t{blockIdx.x} % layout.channels;
  const std::int64_t at = std::int64_t{blockIdx.x} * layout.plane;
  const ChannelSums sums = plane_sums(dy + at, x + at, layout.plane);
  const ChannelGradient<T> gradient =
      training_gradient<T>(sums, static_cast<double>(layout.plane), scale[c], epsilon);
  if (threadIdx.x == 0) planes[blockIdx.x] = {gradient.dscale, gradient.dbias};
  for (std::int64_t i = threadIdx.x; i < layout.plane; i += blockDim.x) {
    dx[at + i] = gradient.dx.at(dy[at + i], x[at + i]);
  }
}

// A thread a channel: its planes in order.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    add_planes(const PlaneGradient* planes, const ChannelLayout layout, T* dscale, T* dbias) {
  const std::int64_t c = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= layout.channels) return;
  PlaneGradient sum{0.0, 0.0};
  for (std::int64_t n = 0; n < layout.batch && layout.plane > 0; ++n) {
    sum.dscale += planes[n * layout.channels + c].dscale;
    sum.dbias += planes[n * layout.channels + c].dbias;
  }
  keep_at(dscale, c, sum.dscale);
  keep_at(dbias, c, sum.dbias);
}

Grid plane_grid(const ChannelLayout& layout) {
  const std::int64_t planes = layout.plane == 0 ? 0 : layout.batch * layout.channels;
  return {.blocks = dim3(static_cast<unsigned>(planes)), .threads = dim3(kTeamThreads)};
}

template <typename T>
void run_instance_norm(const RunArgs& args) {
  const ChannelLayout layout = channel_layout(args.inputs[0].shape());
  launch(args.call, plane_grid(layout), normalize_planes<T>, args.inputs[0].as<const T>(),
         args.inputs[1].as<const T>(), args.inputs[2].as<const T>(), layout,
         std::get<NormParams>(args.params).epsilon, args.outputs[0].as<T>());
}

Prepared prepare_instance_norm_grad(const PrepareArgs& args) {
  const ChannelLayout layout = channel_layout(args.inputs[1].shape());
  const auto planes = static_cast<std::size_t>(layout.batch * layout.channels);
  return {.workspace_bytes = planes * sizeof(PlaneGradient), .state = nullptr};
}

template <typename T>
void run_instance_norm_grad(const RunArgs& args) {
  const ChannelLayout layout = channel_layout(args.inputs[1].shape());
  auto* planes = static_cast<PlaneGradient*>(args.workspace);
  launch(args.call, plane_grid(layout), write_plane_gradients<T>, args.inputs[0].as<const T>(),
         args.inputs[1].as<const T>(), args.inputs[2].as<const T>(), layout,
         std::get<NormParams>(args.params).epsilon, args.outputs[0].as<T>(), planes);
  launch(args.call,
         {.blocks = team_blocks(layout.channels, kTeamThreads), .threads = dim3(kTeamThreads)},
         add_planes<T>, planes, layout, data_or_null<T>(args.outputs, 1),
         data_or_null<T>(args.outputs, 2));
}

}  // namespace

void add_instance_norm(KernelTable& table) {
  table.add("InstanceNormalization", DType::kF32,
            {.name = "instance_norm.cuda", .run = run_instance_norm<float>});
  table.add("InstanceNormalizationGrad", DType::kF32,
            {.name = "instance_norm_grad.cuda",
             .supports = supports_channels_of_first,
             .prepare = prepare_instance_norm_grad,
             .run = run_instance_norm_grad<float>});
}

}  // namespace trainscope::cuda
