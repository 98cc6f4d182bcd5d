// Numbers at equal distances.
#include <cstdint>
#include <type_traits>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// start + i * delta. The last number is before the limit; on the way there an integer product may
// wrap around: in the unsigned type, where that is defined.
template <class T>
__device__ T number_in_range(T start, T delta, std::int64_t i) {
  if constexpr (std::is_integral_v<T>) {
    using Wrapping = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Wrapping>(start) +
                          static_cast<Wrapping>(i) * static_cast<Wrapping>(delta));
  } else {
    return start + static_cast<T>(i) * delta;
  }
}

template <class T>
__global__ void __launch_bounds__(kPackThreads)
    write_range(const T* start, const T* delta, T* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = static_cast<T>(number_in_range(computed(*start), computed(*delta), i));
}

template <class T>
void run_range(const RunArgs& run) {
  const std::int64_t count = run.outputs[0].elements();
  launch(run.call, {.blocks = blocks_for(count), .threads = kPackThreads}, write_range<T>,
         run.inputs[0].as<const T>(), run.inputs[2].as<const T>(), run.outputs[0].as<T>(), count);
}

}  // namespace

void add_range(KernelTable& table) {
  for_number_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("Range", kDTypeOf<T>, {.name = "range.cuda", .run = run_range<T>});
  });
}

}  // namespace trainscope::cuda
