// Running sums along an axis, accumulated in double.
#include <cstdint>
#include <type_traits>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/axis_lines.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// Integers wrap around.
template <class T>
using Accumulator = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                                std::type_identity<double>>::type;

// Which lines, and whether an element's own number belongs to its sum.
struct Scan {
  AxisLines lines;
  bool exclusive = false;
  bool reverse = false;

  // Of the i-th element in the direction of the sum.
  __device__ std::int64_t place(std::int64_t line, std::int64_t i) const {
    return lines.begin_of(line) + (reverse ? lines.size - 1 - i : i) * lines.inner;
  }
};

// A thread a line: neighbours in `inner` read neighbours. y may be x.
template <class T>
__global__ void __launch_bounds__(kPackThreads) sum_lines(Scan scan, const T* x, T* y) {
  const std::int64_t line = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (line >= scan.lines.lines()) return;
  Accumulator<T> sum{};
  for (std::int64_t i = 0; i < scan.lines.size; ++i) {
    const std::int64_t at = scan.place(line, i);
    const Accumulator<T> before = sum;
    sum += static_cast<Accumulator<T>>(x[at]);
    y[at] = static_cast<T>(scan.exclusive ? before : sum);
  }
}

template <class A>
__device__ A shifted_up(A value, unsigned distance) {
  if constexpr (sizeof(A) == 8 && std::is_integral_v<A>) {
    return static_cast<A>(
        __shfl_up_sync(kWholeWarp, static_cast<unsigned long long>(value), distance));
  } else {
    return __shfl_up_sync(kWholeWarp, value, distance);
  }
}

// A warp a line, 32 elements at a time.
template <class T>
__global__ void __launch_bounds__(kPackThreads) sum_long_lines(Scan scan, const T* x, T* y) {
  using A = Accumulator<T>;
  const std::int64_t line = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (line >= scan.lines.lines()) return;
  const unsigned lane = threadIdx.x % kWarp;
  A carried{};
  for (std::int64_t first = 0; first < scan.lines.size; first += kWarp) {
    const bool inside = first + lane < scan.lines.size;
    const std::int64_t at = inside ? scan.place(line, first + lane) : 0;
    A sum = inside ? static_cast<A>(x[at]) : A{};
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
      const A other = shifted_up(sum, distance);
      if (lane >= distance) sum = other + sum;
    }
    const A before = shifted_up(sum, 1);
    const A upto = carried + (scan.exclusive ? (lane == 0 ? A{} : before) : sum);
    if (inside) y[at] = static_cast<T>(upto);
    if constexpr (sizeof(A) == 8 && std::is_integral_v<A>) {
      carried +=
          static_cast<A>(__shfl_sync(kWholeWarp, static_cast<unsigned long long>(sum), kWarp - 1));
    } else {
      carried += __shfl_sync(kWholeWarp, sum, kWarp - 1);
    }
  }
}

template <class T>
void run_cumsum(const RunArgs& run) {
  const auto& params = std::get<ScanParams>(run.params);
  if (run.outputs[0].elements() == 0) return;
  const Scan scan{.lines = axis_lines(run.outputs[0].shape(), params.axis),
                  .exclusive = params.exclusive,
                  .reverse = params.reverse};
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  const std::int64_t lines = scan.lines.lines();
  if (scan.lines.inner >= kWarp) {
    launch(run.call, {.blocks = blocks_for(lines), .threads = kPackThreads}, sum_lines<T>, scan, x,
           y);
  } else {
    launch(run.call, {.blocks = blocks_for(lines * kWarp), .threads = kPackThreads},
           sum_long_lines<T>, scan, x, y);
  }
}

}  // namespace

void add_scan(KernelTable& table) {
  for_types<float, double, std::int32_t, std::int64_t>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("CumSum", kDTypeOf<T>, {.name = "cumsum.cuda", .run = run_cumsum<T>});
  });
}

}  // namespace trainscope::cuda
