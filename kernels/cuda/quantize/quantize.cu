// What quantizing and back makes of a float, and which of its gradients pass.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

// x [rows of the axis, inner]; a scale for all, for each index of the axis, or for each block of
// `block` indices and element of `inner`.
struct ScaleLayout {
  std::int64_t elements = 0;
  std::int64_t size = 1;  // of the axis
  std::int64_t inner = 1;
  std::int64_t block = 1;
  std::int64_t blocks = 1;
  bool single = false;
  bool blocked = false;

  // Number of element i's scale.
  __device__ std::int64_t scale_of(std::int64_t i) const {
    if (single) return 0;
    const std::int64_t row = i / inner;
    const std::int64_t index = row % size / block;
    return blocked ? (row / size * blocks + index) * inner + i % inner : index;
  }
};

ScaleLayout scale_layout(const RunArgs& args) {
  const auto& params = std::get<QuantizeParams>(args.params);
  const Shape& x = args.inputs[0].shape();
  ScaleLayout layout{.elements = x.elements(), .single = args.inputs[1].elements() == 1};
  if (layout.single) return layout;
  layout.size = x[params.axis];
  for (int a = params.axis + 1; a < x.rank; ++a) layout.inner *= x[a];
  layout.blocked = params.block_size > 0;
  layout.block = layout.blocked ? params.block_size : 1;
  layout.blocks = (layout.size + layout.block - 1) / layout.block;
  return layout;
}

// What is read of an element: x, scale, zero point; dy of the gradient.
template <class T>
struct QuantizeOperands {
  const T* x;
  const T* scales;
  const T* zeros;
  const T* dy;
  T* y;  // may be x
  T least;
  T greatest;
};

template <class T>
QuantizeOperands<T> quantize_operands(const RunArgs& args) {
  const auto& params = std::get<QuantizeParams>(args.params);
  return {.x = args.inputs[0].as<const T>(),
          .scales = args.inputs[1].as<const T>(),
          .zeros = args.inputs[2].as<const T>(),
          .dy = args.inputs.size() > 3 ? args.inputs[3].as<const T>() : nullptr,
          .y = args.outputs[0].as<T>(),
          .least = static_cast<T>(params.least),
          .greatest = static_cast<T>(params.greatest)};
}

// A thread an element. Bytes: x read and y written once, scales and zero points from L1. FLOPs: 7
// an element, rounding and comparisons among them.
template <class T>
__global__ void __launch_bounds__(kTeamThreads)
    quantize_and_back(const ScaleLayout layout, const QuantizeOperands<T> a) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= layout.elements) return;
  const std::int64_t at = layout.scale_of(i);
  const T scale = a.scales[at];
  const T zero = a.zeros[at];
  const T q = std::nearbyint(a.x[i] / scale) + zero;
  const T raised = q < a.least ? a.least : q;
  a.y[i] = ((raised > a.greatest ? a.greatest : raised) - zero) * scale;
}

// The gradient of what lies within the limits. Bytes: x read once, dy within the limits, scales and
// zero points from L1; dx written once. FLOPs: 5 an element.
template <class T>
__global__ void __launch_bounds__(kTeamThreads)
    pass_quantized(const ScaleLayout layout, const QuantizeOperands<T> a) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= layout.elements) return;
  const std::int64_t at = layout.scale_of(i);
  const T q = std::nearbyint(a.x[i] / a.scales[at]) + a.zeros[at];
  a.y[i] = q >= a.least && q <= a.greatest ? a.dy[i] : T(0);
}

template <class T>
void fake_quantize(const RunArgs& args) {
  const ScaleLayout layout = scale_layout(args);
  launch(args.call,
         {.blocks = team_blocks(layout.elements, kTeamThreads), .threads = dim3(kTeamThreads)},
         quantize_and_back<T>, layout, quantize_operands<T>(args));
}

template <class T>
void fake_quantize_grad(const RunArgs& args) {
  const ScaleLayout layout = scale_layout(args);
  launch(args.call,
         {.blocks = team_blocks(layout.elements, kTeamThreads), .threads = dim3(kTeamThreads)},
         pass_quantized<T>, layout, quantize_operands<T>(args));
}

}  // namespace

void add_quantize(KernelTable& table) {
  table.add("FakeQuantize", DType::kF32,
            {.name = "fake_quantize.cuda", .run = fake_quantize<float>});
  table.add("FakeQuantizeGrad", DType::kF32,
            {.name = "fake_quantize_grad.cuda", .run = fake_quantize_grad<float>});
}

}  // namespace trainscope::cuda
