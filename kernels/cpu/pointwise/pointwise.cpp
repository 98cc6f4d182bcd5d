// Arithmetic with numpy broadcasting.
#include "kernels/cpu/pointwise/pointwise.h"

#include <cmath>
#include <type_traits>
#include <variant>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kModGrain = 4096;  // divisions take several nanoseconds

// Integer arithmetic wraps around: it is done in the unsigned type, where that is defined.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

struct AddFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct SubFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct MulFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct DivFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      // The one quotient that does not fit, min / -1, wraps around like -min.
      if (b == -1) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
    }
    return a / b;
  }
};

// The rest of a division: none by 0, nor by -1, whose quotient may not fit.
template <class T>
T integer_rest(T a, T b) {
  return b == 0 || b == -1 ? T{0} : static_cast<T>(a % b);
}

struct TruncatedModFunction {
  static constexpr std::int64_t kGrain = kModGrain;
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return integer_rest(a, b);
    } else {
      return std::fmod(a, b);
    }
  }
};

struct FlooredModFunction {
  static constexpr std::int64_t kGrain = kModGrain;
  template <class T>
  static T apply(T a, T b) {
    const T rest = TruncatedModFunction::apply(a, b);
    if constexpr (!std::is_integral_v<T>) {
      if (rest == T(0)) return std::copysign(rest, b);
    }
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
};

template <class T>
void run_mod(const RunArgs& run) {
  if (!std::get<ModParams>(run.params).truncated) {
    return run_binary<T, T, FlooredModFunction>(run);
  }
  run_binary<T, T, TruncatedModFunction>(run);
}

template <class T>
constexpr Kernel kMod{.name = "mod", .prepare = prepare_broadcast, .run = run_mod<T>};

template <class F, class T>
Kernel arithmetic_kernel(std::string_view name) {
  return {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, T, F>};
}

template <class F>
void add_arithmetic(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, arithmetic_kernel<F, float>(name));
  table.add(op, DType::kF64, arithmetic_kernel<F, double>(name));
  table.add(op, DType::kBF16, arithmetic_kernel<F, BFloat16>(name));
  table.add(op, DType::kF16, arithmetic_kernel<F, Float16>(name));
  table.add(op, DType::kI32, arithmetic_kernel<F, std::int32_t>(name));
  table.add(op, DType::kI64, arithmetic_kernel<F, std::int64_t>(name));
}

}  // namespace

void add_pointwise(KernelTable& table) {
  add_arithmetic<AddFunction>(table, "Add", "add");
  add_arithmetic<SubFunction>(table, "Sub", "sub");
  add_arithmetic<MulFunction>(table, "Mul", "mul");
  add_arithmetic<DivFunction>(table, "Div", "div");
  table.add("Mod", DType::kF32, kMod<float>);
  table.add("Mod", DType::kF64, kMod<double>);
  table.add("Mod", DType::kI32, kMod<std::int32_t>);
  table.add("Mod", DType::kI64, kMod<std::int64_t>);
  add_upcast<kMod<float>>(table, "Mod", "mod.upcast");
  add_logic(table);
  add_extremes(table);
  add_pow(table);
  add_functions(table);
  add_trigonometric(table);
}

}  // namespace trainscope::cpu
