// Functions of one element.
#include <cmath>
#include <type_traits>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/support/upcast_integers.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kScalarMathGrain = 2048;  // about 10 ns for each element
constexpr std::int64_t kVectorMathGrain = 8192;  // about 1 ns

struct NegFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  }
};

struct AbsFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else if constexpr (std::is_integral_v<T>) {
      return x < 0 ? NegFunction::apply(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};

struct SignFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    if (x != x) return x;  // NaN
    return static_cast<T>((T{0} < x) - (x < T{0}));
  }
};

struct CeilFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return std::ceil(x);
  }
};

struct FloorFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return std::floor(x);
  }
};

// To even: nobody changes the processor's rounding mode.
struct RoundFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return std::nearbyint(x);
  }
};

struct ReciprocalFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return T(1) / x;
  }
};

struct SqrtFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return std::sqrt(x);
  }
};

struct ExpFunction {
  static constexpr std::int64_t kGrain = kVectorMathGrain;
  template <class T>
  static T apply(T x) {
    return vector_exp(x);
  }
};

struct LogFunction {
  static constexpr std::int64_t kGrain = kScalarMathGrain;
  template <class T>
  static T apply(T x) {
    return std::log(x);
  }
};

template <class F>
void add_float_function(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, {.name = name, .run = run_unary<float, F>});
  table.add(op, DType::kF64, {.name = name, .run = run_unary<double, F>});
}

template <class F>
constexpr Kernel kOfIntegers{.name = {}, .run = run_unary<std::int64_t, F>};

template <class F>
void add_number_function(KernelTable& table, std::string_view op, std::string_view name) {
  add_float_function<F>(table, op, name);
  table.add(op, DType::kBF16, {.name = name, .run = run_unary<BFloat16, F>});
  table.add(op, DType::kF16, {.name = name, .run = run_unary<Float16, F>});
  table.add(op, DType::kI32, {.name = name, .run = run_unary<std::int32_t, F>});
  table.add(op, DType::kI64, {.name = name, .run = run_unary<std::int64_t, F>});
  table.add(op, DType::kU64, {.name = name, .run = run_unary<std::uint64_t, F>});
  add_upcast_integers<kOfIntegers<F>>(table, op, name);
}

}  // namespace

void add_functions(KernelTable& table) {
  add_number_function<NegFunction>(table, "Neg", "neg");
  add_number_function<AbsFunction>(table, "Abs", "abs");
  add_number_function<SignFunction>(table, "Sign", "sign");
  add_float_function<ReciprocalFunction>(table, "Reciprocal", "reciprocal");
  add_float_function<SqrtFunction>(table, "Sqrt", "sqrt");
  add_float_function<ExpFunction>(table, "Exp", "exp");
  add_float_function<LogFunction>(table, "Log", "log");
  add_float_function<CeilFunction>(table, "Ceil", "ceil");
  add_float_function<FloorFunction>(table, "Floor", "floor");
  add_float_function<RoundFunction>(table, "Round", "round");
}

}  // namespace trainscope::cpu
