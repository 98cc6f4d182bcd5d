// Powers and their gradients, with short ways for the exponents that models use.
#include <cmath>
#include <type_traits>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// The exponent is a tensor on the device: each thread looks whether it is a simple one.
template <class T>
struct PowFunction {
  template <class E>
  __device__ T operator()(T x, E exponent) const {
    const auto e = static_cast<T>(exponent);
    if (e == T(2)) return x * x;
    if (e == T(3)) return x * x * x;
    if (e == T(0.5)) return std::sqrt(x);
    return e == T(1) ? x : std::pow(x, e);
  }
};

// Exact where it fits, else wrapped around; 1 / b^-e truncated for a negative exponent, 0 for b =
// 0.
struct IntegerPowFunction {
  template <class T, class E>
  __device__ T operator()(T base, E exponent) const {
    if (exponent < 0) {
      if (base == 1 || (base == -1 && exponent % 2 == 0)) return 1;
      return base == -1 ? T{-1} : T{0};
    }
    using Unsigned = std::make_unsigned_t<T>;
    auto square = static_cast<Unsigned>(base);
    Unsigned result = 1;
    for (; exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};

template <class T>
struct PowGradFunction {
  template <class E>
  __device__ T operator()(T dy, T x, E exponent) const {
    const auto e = static_cast<T>(exponent);
    if (e == T(2)) return dy * (T(2) * x);
    if (e == T(3)) return dy * (T(3) * (x * x));
    if (e == T(0.5)) return dy * (T(0.5) / std::sqrt(x));
    return e == T(0) ? T(0) : dy * (e * std::pow(x, e - T(1)));
  }
};

struct PowExponentGradFunction {
  template <class T>
  __device__ T operator()(T dy, T x, T y) const {
    return x > T(0) ? dy * (y * std::log(x)) : T(0);
  }
};

// Calls f with a null pointer to the exponent's type.
template <class F>
void with_exponent(const TensorView& exponent, F&& f) {
  for_types<float, double, std::int32_t, std::int64_t>([&](auto* type) {
    if (kDTypeOf<Pointee<decltype(type)>> == exponent.type.dtype) f(type);
  });
}

Support supports_exponent(const TensorView& exponent) {
  bool called = false;
  with_exponent(exponent, [&](auto*) { called = true; });
  return supported_if(called, "on CUDA exponents are f32, f64, i32 or i64");
}

Support supports_float_pow(const PrepareArgs& args) {
  if (!is_float(args.outputs[0].type.dtype))
    return {.why_not = "on CUDA a power of integers is by integers"};
  return supports_exponent(args.inputs[1]);
}

Support supports_integer_pow(const PrepareArgs& args) {
  return supported_if(
      is_integer_type(args.inputs[1].type.dtype) && supports_exponent(args.inputs[1]),
      "on CUDA a power of integers is by i32 or i64");
}

Support supports_pow_grad(const PrepareArgs& args) { return supports_exponent(args.inputs[2]); }

template <class T>
void run_pow(const RunArgs& run) {
  with_exponent(run.inputs[1], [&](auto* type) {
    map_broadcast<T, T, Pointee<decltype(type)>>(run, PowFunction<T>{});
  });
}

template <class T>
void run_integer_pow(const RunArgs& run) {
  with_exponent(run.inputs[1], [&](auto* type) {
    using E = Pointee<decltype(type)>;
    if constexpr (std::is_integral_v<E>) map_broadcast<T, T, E>(run, IntegerPowFunction{});
  });
}

// Inputs dy, base, exponent.
template <class T>
void run_pow_grad(const RunArgs& run) {
  with_exponent(run.inputs[2], [&](auto* type) {
    map_broadcast<T, T, T, Pointee<decltype(type)>>(run, PowGradFunction<T>{});
  });
}

// Inputs dy, base, result.
template <class T>
void run_pow_exponent_grad(const RunArgs& run) {
  map_broadcast<T, T, T, T>(run, PowExponentGradFunction{});
}

template <class T>
void add_pow_for(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("Pow", dtype,
            {.name = "pow.cuda",
             .supports = supports_float_pow,
             .prepare = prepare_broadcast,
             .run = run_pow<T>});
  table.add("PowGrad", dtype,
            {.name = "pow_grad.cuda",
             .supports = supports_pow_grad,
             .prepare = prepare_broadcast,
             .run = run_pow_grad<T>});
  table.add("PowExponentGrad", dtype,
            {.name = "pow_exponent_grad.cuda",
             .prepare = prepare_broadcast,
             .run = run_pow_exponent_grad<T>});
}

template <class T>
void add_integer_pow_for(KernelTable& table) {
  table.add("Pow", kDTypeOf<T>,
            {.name = "pow.integer.cuda",
             .supports = supports_integer_pow,
             .prepare = prepare_broadcast,
             .run = run_integer_pow<T>});
}

}  // namespace

void add_pow(KernelTable& table) {
  add_pow_for<float>(table);
  add_pow_for<double>(table);
  add_integer_pow_for<std::int32_t>(table);
  add_integer_pow_for<std::int64_t>(table);
}

}  // namespace trainscope::cuda
