// Weighted sums of few elements along one axis, and the gradient of them.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// x [outer, size, inner], y [outer, outputs, inner], index and weight [outputs, taps]. The op's
// shape rule has checked the index.
template <class T>
struct Interpolation {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;
  std::int64_t outputs = 0;
  std::int64_t taps = 0;
  const std::int64_t* index = nullptr;
  const Computed<T>* weight = nullptr;
};

template <class T>
Interpolation<T> interpolation(const RunArgs& args, const Shape& x) {
  const int axis = std::get<AxisParams>(args.params).axis;
  Interpolation<T> s{.size = x[axis],
                     .outputs = args.inputs[1].shape()[0],
                     .taps = args.inputs[1].shape()[1],
                     .index = args.inputs[1].as<const std::int64_t>(),
                     .weight = args.inputs[2].as<const Computed<T>>()};
  for (int a = 0; a < axis; ++a) s.outer *= x[a];
  for (int a = axis + 1; a < x.rank; ++a) s.inner *= x[a];
  return s;
}

// A thread an element of y. Bytes: x read (again from L1 or L2), y written once.
template <class T>
__global__ void __launch_bounds__(kTeamThreads)
    sum_taps(const Interpolation<T> s, const T* x, const Computed<T>* offset, T* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.outer * s.outputs * s.inner) return;
  const std::int64_t row = i / s.inner;
  const std::int64_t o = row % s.outputs;
  const T* column = x + row / s.outputs * s.size * s.inner + i % s.inner;
  Computed<T> sum = offset == nullptr ? Computed<T>{0} : offset[o];
  for (std::int64_t t = o * s.taps; t < (o + 1) * s.taps; ++t) {
    sum += s.weight[t] * static_cast<Computed<T>>(column[s.index[t] * s.inner]);
  }
  y[i] = static_cast<T>(sum);
}

// A thread a column of dx [size], to which it adds in the order of the taps. Bytes: dy read once,
// dx written once and, for each tap, read and written (from L1 or L2).
template <class T>
__global__ void __launch_bounds__(kTeamThreads)
    spread_taps(const Interpolation<T> s, const T* dy, T* dx) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= s.outer * s.inner) return;
  const std::int64_t outer = column / s.inner;
  const T* from = dy + outer * s.outputs * s.inner + column % s.inner;
  T* to = dx + outer * s.size * s.inner + column % s.inner;
  for (std::int64_t i = 0; i < s.size; ++i) to[i * s.inner] = T{0};
  for (std::int64_t t = 0; t < s.outputs * s.taps; ++t) {
    to[s.index[t] * s.inner] += s.weight[t] * from[t / s.taps * s.inner];
  }
}

template <class T>
void run_interpolate(const RunArgs& args) {
  const Interpolation<T> s = interpolation<T>(args, args.inputs[0].shape());
  launch(args.call,
         {.blocks = team_blocks(args.outputs[0].elements(), kTeamThreads),
          .threads = dim3(kTeamThreads)},
         sum_taps<T>, s, args.inputs[0].as<const T>(),
         data_or_null<const Computed<T>>(args.inputs, 3), args.outputs[0].as<T>());
}

template <class T>
void run_interpolate_grad(const RunArgs& args) {
  const Interpolation<T> s = interpolation<T>(args, args.outputs[0].shape());
  launch(args.call,
         {.blocks = team_blocks(s.outer * s.inner, kTeamThreads), .threads = dim3(kTeamThreads)},
         spread_taps<T>, s, args.inputs[0].as<const T>(), args.outputs[0].as<T>());
}

}  // namespace

void add_interpolate(KernelTable& table) {
  table.add("Interpolate", DType::kF32,
            {.name = "interpolate.cuda", .run = run_interpolate<float>});
  table.add("InterpolateGrad", DType::kF32,
            {.name = "interpolate_grad.cuda", .run = run_interpolate_grad<float>});
}

}  // namespace trainscope::cuda
