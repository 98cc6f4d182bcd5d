// Functions of one element.
#include <cmath>
#include <type_traits>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

struct NegFunction {
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  }
};

struct AbsFunction {
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? NegFunction{}(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};

struct SignFunction {
  template <class T>
  __device__ T operator()(T x) const {
    if (x != x) return x;  // NaN
    return static_cast<T>((T{0} < x) - (x < T{0}));
  }
};

struct CeilFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::ceil(x);
  }
};

struct FloorFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::floor(x);
  }
};

// To even.
struct RoundFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::rint(x);
  }
};

struct ReciprocalFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return T(1) / x;
  }
};

struct SqrtFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct ExpFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::exp(x);
  }
};

struct LogFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::log(x);
  }
};

template <class F>
void add_float_function(KernelTable& table, std::string_view op, std::string_view name) {
  for_types<float, double>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add(op, kDTypeOf<T>, {.name = name, .run = run_unary<T, F>});
  });
}

template <class F>
void add_number_function(KernelTable& table, std::string_view op, std::string_view name) {
  for_number_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add(op, kDTypeOf<T>, {.name = name, .run = run_unary<T, F>});
  });
}

}  // namespace

void add_functions(KernelTable& table) {
  add_number_function<NegFunction>(table, "Neg", "neg.cuda");
  add_number_function<AbsFunction>(table, "Abs", "abs.cuda");
  add_number_function<SignFunction>(table, "Sign", "sign.cuda");
  add_float_function<ReciprocalFunction>(table, "Reciprocal", "reciprocal.cuda");
  add_float_function<SqrtFunction>(table, "Sqrt", "sqrt.cuda");
  add_float_function<ExpFunction>(table, "Exp", "exp.cuda");
  add_float_function<LogFunction>(table, "Log", "log.cuda");
  add_float_function<CeilFunction>(table, "Ceil", "ceil.cuda");
  add_float_function<FloorFunction>(table, "Floor", "floor.cuda");
  add_float_function<RoundFunction>(table, "Round", "round.cuda");
}

}  // namespace trainscope::cuda
