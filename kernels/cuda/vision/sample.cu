// Weighted sums of a few elements of a plane for each of many points, and the gradients.
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

// x [batch, channels, plane], index and weight [batch, points, taps], y [batch, channels, points]
template <typename T>
struct SamplePoints {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t plane;
  std::int64_t points;
  std::int64_t taps;
  const std::int64_t* index;
  const T* weight;  // null: not read

  __device__ bool holds(std::int64_t place) const { return place >= 0 && place < plane; }
};

template <typename T>
SamplePoints<T> sample_points(const Shape& x, const TensorView& index, const T* weight) {
  return {.batch = x[0],
          .channels = x[1],
          .plane = x[2],
          .points = index.shape()[1],
          .taps = index.shape()[2],
          .index = index.as<const std::int64_t>(),
          .weight = weight};
}

__device__ std::int64_t sample_thread() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
Grid sample_grid(std::int64_t items) {
  return {.blocks = team_blocks(items, kTeamThreads), .threads = dim3(kTeamThreads)};
}

// A thread an element of y. Bytes: x where the points lie, index and weight from L2, y written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    take_samples(const SamplePoints<T> s, const T* x, T* y) {
  const std::int64_t i = sample_thread();
  if (i >= s.batch * s.channels * s.points) return;
  const std::int64_t row = i / s.points;
  const T* from = x + row * s.plane;
  const std::int64_t first = (row / s.channels * s.points + i % s.points) * s.taps;
  T sum = 0;
  for (std::int64_t t = first; t < first + s.taps; ++t) {
    if (s.holds(s.index[t])) sum += s.weight[t] * from[s.index[t]];
  }
  y[i] = sum;
}

// dy, index, weight -> dx. A thread a channel of an example, to which it adds point by point: the
// order never changes. Bytes: dy read, dx written, and read and written for each tap.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    spread_samples(const SamplePoints<T> s, const T* dy, T* dx) {
  const std::int64_t row = sample_thread();
  if (row >= s.batch * s.channels) return;
  T* to = dx + row * s.plane;
  for (std::int64_t i = 0; i < s.plane; ++i) to[i] = T{0};
  const std::int64_t first = row / s.channels * s.points * s.taps;
  for (std::int64_t t = 0; t < s.points * s.taps; ++t) {
    const std::int64_t place = s.index[first + t];
    if (!s.holds(place)) continue;
    to[place] += s.weight[first + t] * dy[row * s.points + t / s.taps];
  }
}

// dy, x, index -> dweight, a thread each. Bytes: dy and x at the points, dweight written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    weigh_samples(const SamplePoints<T> s, const T* dy, const T* x, T* dweight) {
  const std::int64_t t = sample_thread();
  if (t >= s.batch * s.points * s.taps) return;
  const std::int64_t point = t / s.taps;
  const std::int64_t n = point / s.points;
  const T* from = x + n * s.channels * s.plane;
  const T* gradient = dy + n * s.channels * s.points + point % s.points;
  const std::int64_t channels = s.holds(s.index[t]) ? s.channels : 0;
  T sum = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    sum += gradient[c * s.points] * from[c * s.plane + s.index[t]];
  }
  dweight[t] = sum;
}

template <typename T>
void sample(const RunArgs& args) {
  const auto points =
      sample_points(args.inputs[0].shape(), args.inputs[1], args.inputs[2].as<const T>());
  launch(args.call, sample_grid(args.outputs[0].elements()), take_samples<T>, points,
         args.inputs[0].as<const T>(), args.outputs[0].as<T>());
}

template <typename T>
void sample_grad_input(const RunArgs& args) {
  const auto points =
      sample_points(args.outputs[0].shape(), args.inputs[1], args.inputs[2].as<const T>());
  launch(args.call, sample_grid(points.batch * points.channels), spread_samples<T>, points,
         args.inputs[0].as<const T>(), args.outputs[0].as<T>());
}

template <typename T>
void sample_grad_weight(const RunArgs& args) {
  const SamplePoints<T> points = sample_points<T>(args.inputs[1].shape(), args.inputs[2], nullptr);
  launch(args.call, sample_grid(args.outputs[0].elements()), weigh_samples<T>, points,
         args.inputs[0].as<const T>(), args.inputs[1].as<const T>(), args.outputs[0].as<T>());
}

}  // namespace

void add_sample(KernelTable& table) {
  table.add("Sample", DType::kF32, {.name = "sample.cuda", .run = sample<float>});
  table.add("SampleGradInput", DType::kF32,
            {.name = "sample_grad_input.cuda", .run = sample_grad_input<float>});
  table.add("SampleGradWeight", DType::kF32,
            {.name = "sample_grad_weight.cuda", .run = sample_grad_weight<float>});
}

}  // namespace trainscope::cuda
