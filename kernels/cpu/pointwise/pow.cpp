// Powers and their gradients, with fast paths for the exponents that models use.
#include <cmath>
#include <type_traits>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/support/convert.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kPowGrain = 2048;  // std::pow takes tens of nanoseconds

// The exponent tensor's only element as T.
template <class T>
T single_exponent(const TensorView& exponent) {
  T value{};
  with_computed_dtype(exponent.type.dtype, [&](auto* type) {
    value = static_cast<T>(*exponent.as<const Pointee<decltype(type)>>());
  });
  return value;
}

template <class T>
void pow_by_single(const RunArgs& run, T e) {
  if (e == T(1)) return map_elements<T>(run, kElementGrain, [](T v) { return v; });
  if (e == T(2)) return map_elements<T>(run, kElementGrain, [](T v) { return v * v; });
  if (e == T(3)) return map_elements<T>(run, kElementGrain, [](T v) { return v * v * v; });
  if (e == T(0.5)) return map_elements<T>(run, kElementGrain, [](T v) { return std::sqrt(v); });
  map_elements<T>(run, kPowGrain, [e](T v) { return std::pow(v, e); });
}

// y = power(base, exponent), both broadcast; the exponent may be of any numeric dtype.
template <class T, class E, class Power>
void pow_broadcast(const RunArgs& run, Power power) {
  const auto& loop = *static_cast<const StridedLoop*>(run.state);
  const T* x = run.inputs[0].as<const T>();
  const E* exponent = run.inputs[1].as<const E>();
  T* y = run.outputs[0].as<T>();
  const std::int64_t step_x = loop.row_stride(1);
  const std::int64_t step_e = loop.row_stride(2);
  parallel_for(run.threads, loop.elements, kPowGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_row(loop, begin, end, [&](const Offsets& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        y[at[0] + i] = power(x[at[1] + i * step_x], exponent[at[2] + i * step_e]);
      }
    });
  });
}

// --- Integer bases -------------------------------------------------------------------------------
// Exact where it fits, else wrapped around; 1 / b^-e truncated for a negative exponent, 0 for b =
// 0.
template <class T>
T integer_power(T base, std::int64_t exponent) {
  if constexpr (std::is_unsigned_v<T>) {
    if (exponent < 0) return base == 1 ? T{1} : T{0};
  } else if (exponent < 0) {
    if (base == 1 || (base == -1 && exponent % 2 == 0)) return 1;
    return base == -1 ? T{-1} : T{0};
  }
  using Unsigned = std::make_unsigned_t<T>;
  Unsigned square = static_cast<Unsigned>(base);
  Unsigned result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <class T, class E>
T power_of_integer(T base, E exponent) {
  if constexpr (std::is_integral_v<E>) {
    return integer_power(base, std::int64_t{exponent});
  } else {
    return converted<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
}

template <class T, class E>
void pow_of_integers(const RunArgs& run) {
  pow_broadcast<T, E>(run, [](T x, E e) { return power_of_integer(x, e); });
}

// Registered for the exponent's type where that is a float.
void run_integer_pow(const RunArgs& run) {
  with_computed_dtype(run.inputs[1].type.dtype, [&](auto* type) {
    using E = Pointee<decltype(type)>;
    if (run.outputs[0].type.dtype == DType::kU64) return pow_of_integers<std::uint64_t, E>(run);
    if (run.outputs[0].type.dtype == DType::kI32) return pow_of_integers<std::int32_t, E>(run);
    pow_of_integers<std::int64_t, E>(run);
  });
}

constexpr Kernel kIntegerPow{.name = "pow", .prepare = prepare_broadcast, .run = run_integer_pow};

template <class T>
void run_pow(const RunArgs& run) {
  if (!is_float(run.outputs[0].type.dtype)) return run_integer_pow(run);
  const TensorView& exponent = run.inputs[1];
  if (exponent.elements() == 1) return pow_by_single<T>(run, single_exponent<T>(exponent));
  with_computed_dtype(exponent.type.dtype, [&](auto* type) {
    using E = Pointee<decltype(type)>;
    pow_broadcast<T, E>(run, [](T x, E e) { return std::pow(x, static_cast<T>(e)); });
  });
}

template <class T>
T pow_slope(T x, T e) {
  return e == T(0) ? T(0) : e * std::pow(x, e - T(1));
}

template <class T>
void pow_grad_by_single(const RunArgs& run, T e) {
  if (e == T(2)) {
    return map_pairs<T>(run, kElementGrain, [](T d, T v) { return d * (T(2) * v); });
  }
  if (e == T(3)) {
    return map_pairs<T>(run, kElementGrain, [](T d, T v) { return d * (T(3) * (v * v)); });
  }
  if (e == T(0.5)) {
    return map_pairs<T>(run, kElementGrain, [](T d, T v) { return d * (T(0.5) / std::sqrt(v)); });
  }
  map_pairs<T>(run, kPowGrain, [e](T d, T v) { return d * pow_slope(v, e); });
}

// Inputs dy, base, exponent.
template <class T>
void run_pow_grad(const RunArgs& run) {
  const TensorView& exponent = run.inputs[2];
  if (exponent.elements() == 1 && run.inputs[1].elements() == run.outputs[0].elements()) {
    return pow_grad_by_single<T>(run, single_exponent<T>(exponent));
  }
  with_computed_dtype(exponent.type.dtype, [&](auto* type) {
    using E = Pointee<decltype(type)>;
    map_triples<T>(run, exponent.as<const E>(), kPowGrain,
                   [](T d, T v, E e) { return d * pow_slope(v, static_cast<T>(e)); });
  });
}

// Inputs dy, base, result.
template <class T>
void run_pow_exponent_grad(const RunArgs& run) {
  map_triples<T>(run, run.inputs[2].as<const T>(), kPowGrain,
                 [](T d, T v, T y) { return v > T(0) ? d * (y * std::log(v)) : T(0); });
}

template <class T>
void add_pow_for(KernelTable& table) {
  table.add("Pow", kDTypeOf<T>, {.name = "pow", .prepare = prepare_broadcast, .run = run_pow<T>});
  table.add("PowGrad", kDTypeOf<T>,
            {.name = "pow_grad", .prepare = prepare_broadcast, .run = run_pow_grad<T>});
  table.add(
      "PowExponentGrad", kDTypeOf<T>,
      {.name = "pow_exponent_grad", .prepare = prepare_broadcast, .run = run_pow_exponent_grad<T>});
}

}  // namespace

void add_pow(KernelTable& table) {
  for (DType dtype : {DType::kI32, DType::kI64, DType::kU64}) {
    table.add("Pow", dtype, kIntegerPow);
  }
  add_upcast_integers<kIntegerPow>(table, "Pow", kIntegerPow.name);
  add_pow_for<float>(table);
  add_pow_for<double>(table);
}

}  // namespace trainscope::cpu
