// Activation functions and their gradients.
#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kVectorMathGrain = 8192;  // about 1 ns for each element

// The comparisons are turned so that a NaN passes through.
struct ReluFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return x < T(0) ? T(0) : x;
  }
};

struct ReluGradFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T dy, T y) {
    return y <= T(0) ? T(0) : dy;
  }
};

struct TanhFunction {
  static constexpr std::int64_t kGrain = kVectorMathGrain;
  template <class T>
  static T apply(T x) {
    return vector_tanh(x);
  }
};

struct TanhGradFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T dy, T y) {
    return dy * (T(1) - y * y);
  }
};

struct SigmoidFunction {
  static constexpr std::int64_t kGrain = kVectorMathGrain;
  template <class T>
  static T apply(T x) {
    return vector_sigmoid(x);
  }
};

struct SigmoidGradFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T dy, T y) {
    return dy * (y * (T(1) - y));
  }
};

struct ErfFunction {
  static constexpr std::int64_t kGrain = kVectorMathGrain;
  template <class T>
  static T apply(T x) {
    return vector_erf(x);
  }
};

struct ErfGradFunction {
  static constexpr std::int64_t kGrain = kVectorMathGrain;
  template <class T>
  static T apply(T dy, T x) {
    constexpr T kTwoOverRootPi = static_cast<T>(1.1283791670955125738961589031215);
    return dy * (kTwoOverRootPi * vector_exp(-x * x));
  }
};

template <class F>
void add_function(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, {.name = name, .run = run_unary<float, F>});
  table.add(op, DType::kF64, {.name = name, .run = run_unary<double, F>});
}

template <class F>
void add_gradient(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, {.name = name, .run = run_pairwise<float, F>});
  table.add(op, DType::kF64, {.name = name, .run = run_pairwise<double, F>});
}

}  // namespace

void add_activation(KernelTable& table) {
  add_function<ReluFunction>(table, "Relu", "relu");
  add_function<TanhFunction>(table, "Tanh", "tanh");
  add_function<SigmoidFunction>(table, "Sigmoid", "sigmoid");
  add_function<ErfFunction>(table, "Erf", "erf");
  add_gradient<ReluGradFunction>(table, "ReluGrad", "relu_grad");
  add_gradient<TanhGradFunction>(table, "TanhGrad", "tanh_grad");
  add_gradient<SigmoidGradFunction>(table, "SigmoidGrad", "sigmoid_grad");
  add_gradient<ErfGradFunction>(table, "ErfGrad", "erf_grad");
}

}  // namespace trainscope::cpu
