// Values that depend on shapes and parameters only.
#include <variant>

#include "kernels/api/element_bits.h"
#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

template <class T>
struct ConstantFunction {
  T bits;
  __device__ T operator()() const { return bits; }
};

void run_constant_of_shape(const RunArgs& run) {
  const DType dtype = run.outputs[0].type.dtype;
  const double value = std::get<FillParams>(run.params).value;
  with_width(dtype, [&](auto* type) {
    using T = Pointee<decltype(type)>;
    map_elements<T>(run, ConstantFunction<T>{element_bits<T>(dtype, value)});
  });
}

// A shape travels in the arguments of the launch.
struct Sizes {
  std::int64_t of_axis[kMaxRank] = {};
};

__global__ void write_sizes(Sizes sizes, std::int64_t* y, int count) {
  // By one thread, unrolled: with an index of its own each would have a copy of the array.
#pragma unroll
  for (int i = 0; i < kMaxRank; ++i) {
    if (i < count) y[i] = sizes.of_axis[i];
  }
}

// SliceParams::start[0] is the first axis whose size is wanted.
void run_shape(const RunArgs& run) {
  const auto first = static_cast<int>(std::get<SliceParams>(run.params).start[0]);
  const TensorView& y = run.outputs[0];
  const auto count = static_cast<int>(y.elements());
  Sizes sizes;
  for (int i = 0; i < count; ++i) sizes.of_axis[i] = run.inputs[0].shape()[first + i];
  launch(run.call, {.blocks = count == 0 ? 0U : 1U, .threads = 1}, write_sizes, sizes,
         y.as<std::int64_t>(), count);
}

}  // namespace

void add_constant(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    table.add("ConstantOfShape", dtype,
              {.name = "constant_of_shape.cuda", .run = run_constant_of_shape});
    table.add("Shape", dtype, {.name = "shape.cuda", .run = run_shape});
  }
}

}  // namespace trainscope::cuda
