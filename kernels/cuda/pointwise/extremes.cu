// The larger and the smaller of numbers, with numpy broadcasting, and limits.
#include <limits>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// A NaN wins, as in numpy and PyTorch: it fails every comparison but with itself.
struct MaximumFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return (a > b || a != a) ? a : b;
  }
};

struct MinimumFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return (a < b || a != a) ? a : b;
  }
};

struct MaximumGradFunction {
  template <class T>
  __device__ T operator()(T dy, T a, T b) const {
    const T shared = a == b ? dy * T(0.5) : dy;
    return a < b ? T(0) : shared;
  }
};

template <class T>
void run_maximum_grad(const RunArgs& run) {
  map_broadcast<T, T, T, T>(run, MaximumGradFunction{});
}

// The limits lie in the device's memory; null: there is none. A NaN passes through.
template <class T>
struct ClipFunction {
  const T* lower;
  const T* upper;
  __device__ Computed<T> operator()(Computed<T> x) const {
    const Computed<T> raised = lower != nullptr && x < computed(*lower) ? computed(*lower) : x;
    return upper != nullptr && raised > computed(*upper) ? computed(*upper) : raised;
  }
};

template <class T>
const T* limit(const RunArgs& run, std::size_t input) {
  const bool given = input < run.inputs.size() && run.inputs[input].present;
  return given ? run.inputs[input].as<const T>() : nullptr;
}

template <class T>
void run_clip(const RunArgs& run) {
  map_elements<T, T>(run, ClipFunction<T>{limit<T>(run, 1), limit<T>(run, 2)});
}

}  // namespace

void add_extremes(KernelTable& table) {
  for_number_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    constexpr DType dtype = kDTypeOf<T>;
    table.add("Maximum", dtype,
              {.name = "maximum.cuda",
               .prepare = prepare_broadcast,
               .run = run_binary<T, T, MaximumFunction>});
    table.add("Minimum", dtype,
              {.name = "minimum.cuda",
               .prepare = prepare_broadcast,
               .run = run_binary<T, T, MinimumFunction>});
    table.add("Clip", dtype, {.name = "clip.cuda", .run = run_clip<T>});
  });
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add(
        "MaximumGrad", kDTypeOf<T>,
        {.name = "maximum_grad.cuda", .prepare = prepare_broadcast, .run = run_maximum_grad<T>});
  });
}

}  // namespace trainscope::cuda
