// Places of extreme elements along an axis, one line of the tensor after the other.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/movement/copies.h"
#include "kernels/cuda/support/axis_lines.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

template <class T>
__device__ bool is_nan(T x) {
  return x != x;
}

// Whether a goes before b. A NaN is larger than any number.
struct LargestFirst {
  template <class T>
  __device__ static bool before(T a, T b) {
    return a > b || (is_nan(a) && !is_nan(b));
  }
};
struct SmallestFirst {
  template <class T>
  __device__ static bool before(T a, T b) {
    return a < b || (is_nan(b) && !is_nan(a));
  }
};
// For ArgMin, which like ArgMax answers with the place of a NaN.
struct SmallestOrNaNFirst {
  template <class T>
  __device__ static bool before(T a, T b) {
    return a < b || (is_nan(a) && !is_nan(b));
  }
};

// --- ArgMax, ArgMin ------------------------------------------------------------------------------
// The better of two places: by element, and of equal ones the first or the last. No place: -1.
template <class T, class Order>
struct Best {
  T element;
  std::int64_t place;

  __device__ void meet(T other, std::int64_t other_place, bool last) {
    if (other_place < 0) return;
    const bool better = Order::before(other, element);
    const bool equal = !better && !Order::before(element, other);
    const bool wins = better || (equal && (other_place > place) == last);
    if (place >= 0 && !wins) return;
    element = other;
    place = other_place;
  }
};

// A warp a line x [size] of x [outer, size, inner]; reads it once.
template <class T, class Order>
__global__ void __launch_bounds__(kPackThreads)
    find_best(AxisLines shape, bool last, const T* x, std::int64_t* y) {
  const std::int64_t line = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (line >= shape.lines()) return;
  const T* elements = x + shape.begin_of(line);
  const unsigned lane = threadIdx.x % kWarp;
  Best<T, Order> best{T{}, -1};
  for (std::int64_t i = lane; i < shape.size; i += kWarp) {
    best.meet(elements[i * shape.inner], i, last);
  }
  for (int other = kWarp / 2; other > 0; other /= 2) {
    const T element = __shfl_xor_sync(kWholeWarp, best.element, other);
    const auto place = static_cast<std::int64_t>(
        __shfl_xor_sync(kWholeWarp, static_cast<long long>(best.place), other));
    best.meet(element, place, last);
  }
  if (lane == 0) y[line] = best.place;
}

template <class T, class Order>
void run_arg(const RunArgs& run) {
  const auto& params = std::get<ArgParams>(run.params);
  const AxisLines shape = axis_lines(run.inputs[0].shape(), params.axis);
  launch(run.call, {.blocks = blocks_for(shape.lines() * kWarp), .threads = kPackThreads},
         find_best<T, Order>, shape, params.last, run.inputs[0].as<const T>(),
         run.outputs[0].as<std::int64_t>());
}

// --- TopK ----------------------------------------------------------------------------------------
// Where the results of a line go; null when nobody wants them.
template <class T>
struct TopKResults {
  T* values;
  std::int64_t* indices;
};

// A thread an element of x [outer, size, inner]: its place among the line's is how many go before
// it, the first of equal ones first. Compares size^2 pairs a line, which stay in the caches: for
// lines of thousands, such as the scores of experts, not of whole vocabularies.
template <class T, class Order>
__global__ void __launch_bounds__(kPackThreads)
    rank_elements(AxisLines from, std::int64_t count, const T* x, TopKResults<T> results) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread >= from.lines() * from.size) return;
  const std::int64_t line = thread / from.size;
  const std::int64_t own = thread % from.size;
  const T* elements = x + from.begin_of(line);
  const T element = elements[own * from.inner];
  std::int64_t rank = 0;
  for (std::int64_t i = 0; i < from.size && rank < count; ++i) {
    const T other = elements[i * from.inner];
    const bool equal = !Order::before(other, element) && !Order::before(element, other);
    rank += Order::before(other, element) || (equal && i < own) ? 1 : 0;
  }
  if (rank >= count) return;
  const AxisLines to{.outer = from.outer, .size = count, .inner = from.inner};
  const std::int64_t at = to.begin_of(line) + rank * to.inner;
  if (results.values != nullptr) results.values[at] = element;
  if (results.indices != nullptr) results.indices[at] = own;
}

template <class T, class Order>
void top_k(const RunArgs& run, const TopKParams& params) {
  const AxisLines from = axis_lines(run.inputs[0].shape(), params.axis);
  const bool two = run.outputs.size() > 1 && run.outputs[1].present;
  const TopKResults<T> results{.values = run.outputs[0].present ? run.outputs[0].as<T>() : nullptr,
                               .indices = two ? run.outputs[1].as<std::int64_t>() : nullptr};
  const std::int64_t elements = params.count == 0 ? 0 : from.lines() * from.size;
  launch(run.call, {.blocks = blocks_for(elements), .threads = kPackThreads},
         rank_elements<T, Order>, from, params.count, run.inputs[0].as<const T>(), results);
}

template <class T>
void run_top_k(const RunArgs& run) {
  const auto& params = std::get<TopKParams>(run.params);
  if (params.largest) return top_k<T, LargestFirst>(run, params);
  top_k<T, SmallestFirst>(run, params);
}

// Inputs dy and the places of its elements along the axis, which differ within a line. A thread an
// element of dy.
template <class T>
__global__ void __launch_bounds__(kPackThreads)
    put_back(AxisLines from, std::int64_t size, const T* dy, const std::int64_t* indices, T* dx) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread >= from.lines() * from.size) return;
  const std::int64_t line = thread / from.size;
  const std::int64_t at = from.begin_of(line) + thread % from.size * from.inner;
  const std::int64_t place = indices[at];
  if (place < 0 || place >= size) return;
  const AxisLines to{.outer = from.outer, .size = size, .inner = from.inner};
  dx[to.begin_of(line) + place * to.inner] = dy[at];
}

template <class T>
void run_top_k_grad(const RunArgs& run) {
  const int axis = std::get<AxisParams>(run.params).axis;
  const AxisLines from = axis_lines(run.inputs[0].shape(), axis);
  T* dx = run.outputs[0].as<T>();
  fill_zeros(run.call, dx, run.outputs[0].elements());
  launch(run.call, {.blocks = blocks_for(from.lines() * from.size), .threads = kPackThreads},
         put_back<T>, from, run.outputs[0].shape()[axis], run.inputs[0].as<const T>(),
         run.inputs[1].as<const std::int64_t>(), dx);
}

}  // namespace

void add_order(KernelTable& table) {
  for_types<float, double, std::int32_t, std::int64_t>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    constexpr DType dtype = kDTypeOf<T>;
    table.add("ArgMax", dtype, {.name = "arg_max.cuda", .run = run_arg<T, LargestFirst>});
    table.add("ArgMin", dtype, {.name = "arg_min.cuda", .run = run_arg<T, SmallestOrNaNFirst>});
    table.add("TopK", dtype, {.name = "top_k.cuda", .run = run_top_k<T>});
  });
  table.add("TopKGrad", DType::kF32, {.name = "top_k_grad.cuda", .run = run_top_k_grad<float>});
  table.add("TopKGrad", DType::kF64, {.name = "top_k_grad.cuda", .run = run_top_k_grad<double>});
}

}  // namespace trainscope::cuda
