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

// Calls f with a null pointer to the dtype's type; not for types without kernels of their own.
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

// --- Between any two types that are not only stored ----------------------------------------------
// What holds every number of T exactly.
template <class T>
using Widest = std::conditional_t<std::is_same_v<T, std::uint64_t>, std::uint64_t,
                                  std::conditional_t<std::is_integral_v<T>, std::int64_t, double>>;

// Calls f with a null pointer to the dtype's type, on the device too.
template <class F>
__host__ __device__ void with_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(static_cast<float*>(nullptr));
    case DType::kF64:
      return f(static_cast<double*>(nullptr));
    case DType::kBF16:
      return f(static_cast<BFloat16*>(nullptr));
    case DType::kF16:
      return f(static_cast<Float16*>(nullptr));
    case DType::kI8:
      return f(static_cast<std::int8_t*>(nullptr));
    case DType::kU8:
      return f(static_cast<std::uint8_t*>(nullptr));
    case DType::kI16:
      return f(static_cast<std::int16_t*>(nullptr));
    case DType::kU16:
      return f(static_cast<std::uint16_t*>(nullptr));
    case DType::kI32:
      return f(static_cast<std::int32_t*>(nullptr));
    case DType::kU32:
      return f(static_cast<std::uint32_t*>(nullptr));
    case DType::kI64:
      return f(static_cast<std::int64_t*>(nullptr));
    case DType::kU64:
      return f(static_cast<std::uint64_t*>(nullptr));
    case DType::kBool:
      return f(static_cast<bool*>(nullptr));
    default:
      return;
  }
}

struct TypedElements {
  DType dtype;
  void* data;
};

// Floats beyond an integer's range give its nearest, NaN gives 0; integers keep their low bits.
template <class To, class Wide>
__device__ To narrowed(Wide x) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> &&
                std::is_same_v<Wide, double>) {
    constexpr To kLeast = std::numeric_limits<To>::min();
    constexpr To kMost = std::numeric_limits<To>::max();
    if (x != x) return 0;
    if (x <= static_cast<double>(kLeast)) return kLeast;
    // The greatest number of 64 bits is rounded up as a double: what reaches it is too large.
    return x >= static_cast<double>(kMost) ? kMost : static_cast<To>(x);
  } else {
    return static_cast<To>(CastFunction<Computed<To>>{}(x));
  }
}

// A thread an element. Both types are the same for all threads: the switches cost no divergence.
template <class Wide>
__global__ void __launch_bounds__(kPackThreads)
    cast_elements(TypedElements x, TypedElements y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Wide wide{};
  with_number(x.dtype, [&](auto* type) {
    using From = Pointee<decltype(type)>;
    if constexpr (std::is_same_v<Widest<From>, Wide>) {
      wide = static_cast<Wide>(computed(static_cast<const From*>(x.data)[i]));
    }
  });
  with_number(y.dtype, [&](auto* type) {
    using To = Pointee<decltype(type)>;
    static_cast<To*>(y.data)[i] = narrowed<To>(wide);
  });
}

void run_wide_cast(const RunArgs& run) {
  const std::int64_t count = run.outputs[0].elements();
  with_number(run.inputs[0].type.dtype, [&](auto* type) {
    launch(run.call, {.blocks = blocks_for(count), .threads = kPackThreads},
           cast_elements<Widest<Pointee<decltype(type)>>>,
           TypedElements{run.inputs[0].type.dtype, run.inputs[0].data},
           TypedElements{run.outputs[0].type.dtype, run.outputs[0].data}, count);
  });
}

Support supports_cast(const PrepareArgs& args) {
  return supported_if(
      !is_storage(args.inputs[0].type.dtype) && !is_storage(args.outputs[0].type.dtype),
      "on CUDA types that are only stored are not converted");
}

void run_cast(const RunArgs& run) {
  if (!is_converted(run.inputs[0].type.dtype) || !is_converted(run.outputs[0].type.dtype)) {
    return run_wide_cast(run);
  }
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
