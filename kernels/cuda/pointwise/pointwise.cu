// Arithmetic with numpy broadcasting.
#include <cmath>
#include <type_traits>
#include <variant>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// Integer arithmetic wraps around: it is done in the unsigned type, where that is defined.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

struct AddFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct SubFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct MulFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct DivFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      // The one quotient that does not fit, min / -1, wraps around like -min.
      if (b == static_cast<T>(-1)) {
        return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
      }
    }
    return a / b;
  }
};

// The rest of a division: none by 0, nor by -1, whose quotient may not fit.
struct TruncatedModFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return b == 0 || b == static_cast<T>(-1) ? T{0} : static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};

struct FlooredModFunction {
  template <class T>
  __device__ T operator()(T a, T b) const {
    const T rest = TruncatedModFunction{}(a, b);
    if constexpr (!std::is_integral_v<T>) {
      if (rest == T(0)) return std::copysign(rest, b);
    }
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
};

template <class T>
void run_mod(const RunArgs& run) {
  if (std::get<ModParams>(run.params).truncated) return run_binary<T, T, TruncatedModFunction>(run);
  run_binary<T, T, FlooredModFunction>(run);
}

template <class F>
void add_arithmetic(KernelTable& table, std::string_view op, std::string_view name) {
  for_number_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add(op, kDTypeOf<T>,
              {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, T, F>});
  });
}

}  // namespace

void add_pointwise(KernelTable& table) {
  add_arithmetic<AddFunction>(table, "Add", "add.cuda");
  add_arithmetic<SubFunction>(table, "Sub", "sub.cuda");
  add_arithmetic<MulFunction>(table, "Mul", "mul.cuda");
  add_arithmetic<DivFunction>(table, "Div", "div.cuda");
  for_types<float, std::int32_t, std::int64_t>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("Mod", kDTypeOf<T>,
              {.name = "mod.cuda", .prepare = prepare_broadcast, .run = run_mod<T>});
  });
  add_logic(table);
  add_extremes(table);
  add_pow(table);
  add_functions(table);
  add_trigonometric(table);
}

}  // namespace trainscope::cuda
