// Activation functions and their gradients.
#include <cmath>
#include <variant>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kVectorMathGrain = 8192;  // about 1 ns for each element
constexpr std::int64_t kScalarMathGrain = 2048;  // about 10 ns

// The comparisons are written so that a NaN passes through.
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

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
struct SoftplusFunction {
  static constexpr std::int64_t kGrain = kScalarMathGrain;
  template <class T>
  static T apply(T x) {
    const T positive = x < T(0) ? T(0) : x;
    return positive + std::log1p(vector_exp(-std::fabs(x)));
  }
};

struct SoftsignFunction {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return x / (T(1) + std::fabs(x));
  }
};

// --- Functions with a parameter ------------------------------------------------------------------
template <class T>
T alpha_of(const RunArgs& run) {
  return static_cast<T>(std::get<AlphaParams>(run.params).alpha);
}

template <class T>
void run_elu(const RunArgs& run) {
  using C = Computed<T>;
  map_elements<T>(run, kVectorMathGrain, [alpha = alpha_of<C>(run)](C x) {
    return x > C(0) ? x : alpha * vector_expm1(x);
  });
}

template <class T>
void run_elu_grad(const RunArgs& run) {
  using C = Computed<T>;
  map_pairs<T>(run, kElementGrain,
               [alpha = alpha_of<C>(run)](C dy, C y) { return y > C(0) ? dy : dy * (y + alpha); });
}

template <class T>
void run_leaky_relu(const RunArgs& run) {
  using C = Computed<T>;
  map_elements<T>(run, kElementGrain,
                  [alpha = alpha_of<C>(run)](C x) { return x > C(0) ? x : alpha * x; });
}

template <class T>
void run_leaky_relu_grad(const RunArgs& run) {
  using C = Computed<T>;
  map_pairs<T>(run, kElementGrain,
               [alpha = alpha_of<C>(run)](C dy, C v) { return v > C(0) ? dy : alpha * dy; });
}

template <class F>
void add_function(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, {.name = name, .run = run_unary<float, F>});
  table.add(op, DType::kF64, {.name = name, .run = run_unary<double, F>});
  table.add(op, DType::kBF16, {.name = name, .run = run_unary<BFloat16, F>});
  table.add(op, DType::kF16, {.name = name, .run = run_unary<Float16, F>});
}

template <class F>
void add_gradient(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, {.name = name, .run = run_pairwise<float, F>});
  table.add(op, DType::kF64, {.name = name, .run = run_pairwise<double, F>});
  table.add(op, DType::kBF16, {.name = name, .run = run_pairwise<BFloat16, F>});
  table.add(op, DType::kF16, {.name = name, .run = run_pairwise<Float16, F>});
}

template <class T>
void add_parametric(KernelTable& table) {
  table.add("Elu", kDTypeOf<T>, {.name = "elu", .run = run_elu<T>});
  table.add("EluGrad", kDTypeOf<T>, {.name = "elu_grad", .run = run_elu_grad<T>});
  table.add("LeakyRelu", kDTypeOf<T>, {.name = "leaky_relu", .run = run_leaky_relu<T>});
  table.add("LeakyReluGrad", kDTypeOf<T>,
            {.name = "leaky_relu_grad", .run = run_leaky_relu_grad<T>});
}

}  // namespace

void add_activation(KernelTable& table) {
  add_function<ReluFunction>(table, "Relu", "relu");
  add_function<TanhFunction>(table, "Tanh", "tanh");
  add_function<SigmoidFunction>(table, "Sigmoid", "sigmoid");
  add_function<ErfFunction>(table, "Erf", "erf");
  add_function<SoftplusFunction>(table, "Softplus", "softplus");
  add_function<SoftsignFunction>(table, "Softsign", "softsign");
  add_gradient<ReluGradFunction>(table, "ReluGrad", "relu_grad");
  add_gradient<TanhGradFunction>(table, "TanhGrad", "tanh_grad");
  add_gradient<SigmoidGradFunction>(table, "SigmoidGrad", "sigmoid_grad");
  add_gradient<ErfGradFunction>(table, "ErfGrad", "erf_grad");
  add_parametric<float>(table);
  add_parametric<double>(table);
  add_parametric<BFloat16>(table);
  add_parametric<Float16>(table);
}

}  // namespace trainscope::cpu
