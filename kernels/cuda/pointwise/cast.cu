// Conversion between element types.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// Floats beyond an integer's range give its nearest, NaN gives 0.
template <class To>
struct CastFunction {
  template <class From>
  __device__ To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From{};
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // The limits as From: -2^n exactly, and 2^n, the first number beyond. NaN fails both tests.
      constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
      if (x >= -kLow) return std::numeric_limits<To>::max();
      if (x < kLow) return std::numeric_limits<To>::min();
      return x == x ? static_cast<To>(x) : To{0};
    } else {
      return static_cast<To>(x);
    }
  }
};

// A bool is read as the byte it is.
template <class T>
using Read = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

// Calls f with a null pointer to the dtype's type; not for types without conversions here.
template <class F>
void with_converted(DType dtype, F&& f) {
  for_types<float, double, BFloat16, Float16, std::int32_t, std::int64_t, bool>([&](auto* type) {
    if (kDTypeOf<Pointee<decltype(type)>> == dtype) f(type);
  });
}

bool is_converted(DType dtype) {
  bool called = false;
  with_converted(dtype, [&](auto*) { called = true; });
  return called;
}

Support supports_cast(const PrepareArgs& args) {
  return supported_if(
      is_converted(args.inputs[0].type.dtype) && is_converted(args.outputs[0].type.dtype),
      "on CUDA only f32, f64, bf16, f16, i32, i64 and bool are converted");
}

void run_cast(const RunArgs& run) {
  with_converted(run.inputs[0].type.dtype, [&](auto* from) {
    with_converted(run.outputs[0].type.dtype, [&](auto* to) {
      using From = Pointee<decltype(from)>;
      using To = Pointee<decltype(to)>;
      map_elements<To, Read<From>>(run, CastFunction<Computed<To>>{});
    });
  });
}

}  // namespace

void add_cast(KernelTable& table) {
  for (const DType dtype : kAllDTypes) {
    table.add("Cast", dtype, {.name = "cast.cuda", .supports = supports_cast, .run = run_cast});
  }
}

}  // namespace trainscope::cuda
