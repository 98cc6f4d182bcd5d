// Values that depend on shapes and parameters only.
#include <algorithm>

#include "kernels/api/element_bits.h"
#include "kernels/api/kernel.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

void run_constant_of_shape(const RunArgs& run) {
  const double value = std::get<FillParams>(run.params).value;
  const TensorView& y = run.outputs[0];
  with_width(y.type.dtype, [&](auto* type) {
    using T = Pointee<decltype(type)>;
    T* out = y.as<T>();
    const T element = element_bits<T>(y.type.dtype, value);
    parallel_for(
        run.threads, y.elements(), kElementGrain,
        [=](std::int64_t begin, std::int64_t end) { std::fill(out + begin, out + end, element); });
  });
}

// SliceParams::start[0] is the first axis whose size is wanted.
void run_shape(const RunArgs& run) {
  const auto first = static_cast<int>(std::get<SliceParams>(run.params).start[0]);
  const TensorView& y = run.outputs[0];
  for (int i = 0; i < static_cast<int>(y.elements()); ++i) {
    y.as<std::int64_t>()[i] = run.inputs[0].shape()[first + i];
  }
}

}  // namespace

void add_constant(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("ConstantOfShape", dtype,
              {.name = "constant_of_shape", .run = run_constant_of_shape});
    table.add("Shape", dtype, {.name = "shape", .run = run_shape});
  }
}

}  // namespace trainscope::cpu
