// Arithmetic with numpy broadcasting.
#include "kernels/cpu/pointwise/pointwise.h"

#include <cmath>
#include <type_traits>
#include <variant>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/upcast_integers.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kModGrain = 4096;  // divisions take several nanoseconds

// Integer arithmetic wraps around: it is done in the unsigned type, where that is defined.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

template <class T>
bool is_minus_one(T x) {
  return std::is_signed_v<T> && x == static_cast<T>(-1);
}

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
      if (is_minus_one(b)) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
    }
    return a / b;
  }
};

// The rest of a division: none by 0, nor by -1, whose quotient may not fit.
template <class T>
T integer_rest(T a, T b) {
  return b == 0 || is_minus_one(b) ? T{0} : static_cast<T>(a % b);
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
    if constexpr (std::is_unsigned_v<T>) {
      return rest;
    } else if constexpr (!std::is_integral_v<T>) {
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

template <class T>
void add_mod(KernelTable& table) {
  table.add("Mod", kDTypeOf<T>, kMod<T>);
}

template <class F, class T>
constexpr Kernel kArithmetic{.name = {}, .prepare = prepare_broadcast, .run = run_binary<T, T, F>};

template <class F, class T>
void add_arithmetic_for(KernelTable& table, std::string_view op, std::string_view name) {
  Kernel kernel = kArithmetic<F, T>;
  kernel.name = name;
  table.add(op, kDTypeOf<T>, kernel);
}

template <class F>
void add_arithmetic(KernelTable& table, std::string_view op, std::string_view name) {
  add_arithmetic_for<F, float>(table, op, name);
  add_arithmetic_for<F, double>(table, op, name);
  add_arithmetic_for<F, BFloat16>(table, op, name);
  add_arithmetic_for<F, Float16>(table, op, name);
  add_arithmetic_for<F, std::int32_t>(table, op, name);
  add_arithmetic_for<F, std::int64_t>(table, op, name);
  add_arithmetic_for<F, std::uint64_t>(table, op, name);
  add_upcast_integers<kArithmetic<F, std::int64_t>>(table, op, name);
}

}  // namespace

void add_pointwise(KernelTable& table) {
  add_arithmetic<AddFunction>(table, "Add", "add");
  add_arithmetic<SubFunction>(table, "Sub", "sub");
  add_arithmetic<MulFunction>(table, "Mul", "mul");
  add_arithmetic<DivFunction>(table, "Div", "div");
  add_mod<float>(table);
  add_mod<double>(table);
  add_mod<std::int32_t>(table);
  add_mod<std::int64_t>(table);
  add_mod<std::uint64_t>(table);
  add_upcast_integers<kMod<std::int64_t>>(table, "Mod", "mod");
  add_upcast<kMod<float>>(table, "Mod", "mod.upcast");
  add_logic(table);
  add_extremes(table);
  add_pow(table);
  add_functions(table);
  add_trigonometric(table);
}

}  // namespace trainscope::cpu
