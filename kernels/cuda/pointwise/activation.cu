// Activation functions and their gradients.
#include <cmath>
#include <string_view>
#include <variant>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// The comparisons are written so that a NaN passes through.
struct ReluFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

struct ReluGradFunction {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return y <= T(0) ? T(0) : dy;
  }
};

struct TanhFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::tanh(x);
  }
};

struct TanhGradFunction {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return dy * (T(1) - y * y);
  }
};

struct SigmoidFunction {
  template <class T>
  __device__ T operator()(T x) const {
    // Of -|x| the power cannot overflow.
    const T power = std::exp(-std::fabs(x));
    return (x < T(0) ? power : T(1)) / (T(1) + power);
  }
};

struct SigmoidGradFunction {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return dy * (y * (T(1) - y));
  }
};

struct ErfFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return std::erf(x);
  }
};

struct ErfGradFunction {
  template <class T>
  __device__ T operator()(T dy, T x) const {
    constexpr T kTwoOverRootPi = static_cast<T>(1.1283791670955125738961589031215);
    return dy * (kTwoOverRootPi * std::exp(-x * x));
  }
};

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
struct SoftplusFunction {
  template <class T>
  __device__ T operator()(T x) const {
    const T positive = x < T(0) ? T(0) : x;
    return positive + std::log1p(std::exp(-std::fabs(x)));
  }
};

struct SoftsignFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};

// --- Functions with a parameter ------------------------------------------------------------------
template <class C>
struct EluFunction {
  C alpha;
  __device__ C operator()(C x) const { return x > C(0) ? x : alpha * std::expm1(x); }
};

template <class C>
struct EluGradFunction {
  C alpha;
  __device__ C operator()(C dy, C y) const { return y > C(0) ? dy : dy * (y + alpha); }
};

template <class C>
struct LeakyReluFunction {
  C alpha;
  __device__ C operator()(C x) const { return x > C(0) ? x : alpha * x; }
};

template <class C>
struct LeakyReluGradFunction {
  C alpha;
  __device__ C operator()(C dy, C v) const { return v > C(0) ? dy : alpha * dy; }
};

template <class T, template <class> class F>
void run_parametric(const RunArgs& run) {
  using C = Computed<T>;
  const auto alpha = static_cast<C>(std::get<AlphaParams>(run.params).alpha);
  map_elements<T, T>(run, F<C>{alpha});
}

template <class T, template <class> class F>
void run_parametric_grad(const RunArgs& run) {
  using C = Computed<T>;
  const auto alpha = static_cast<C>(std::get<AlphaParams>(run.params).alpha);
  map_elements<T, T, T>(run, F<C>{alpha});
}

template <class F>
void add_function(KernelTable& table, std::string_view op, std::string_view name) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add(op, kDTypeOf<T>, {.name = name, .run = run_unary<T, F>});
  });
}

template <class F>
void add_gradient(KernelTable& table, std::string_view op, std::string_view name) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add(op, kDTypeOf<T>, {.name = name, .run = run_pairwise<T, F>});
  });
}

template <class T>
void add_parametric(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("Elu", dtype, {.name = "elu.cuda", .run = run_parametric<T, EluFunction>});
  table.add("EluGrad", dtype,
            {.name = "elu_grad.cuda", .run = run_parametric_grad<T, EluGradFunction>});
  table.add("LeakyRelu", dtype,
            {.name = "leaky_relu.cuda", .run = run_parametric<T, LeakyReluFunction>});
  table.add("LeakyReluGrad", dtype,
            {.name = "leaky_relu_grad.cuda", .run = run_parametric_grad<T, LeakyReluGradFunction>});
}

}  // namespace

void add_activation(KernelTable& table) {
  add_function<ReluFunction>(table, "Relu", "relu.cuda");
  add_function<TanhFunction>(table, "Tanh", "tanh.cuda");
  add_function<SigmoidFunction>(table, "Sigmoid", "sigmoid.cuda");
  add_function<ErfFunction>(table, "Erf", "erf.cuda");
  add_function<SoftplusFunction>(table, "Softplus", "softplus.cuda");
  add_function<SoftsignFunction>(table, "Softsign", "softsign.cuda");
  add_gradient<ReluGradFunction>(table, "ReluGrad", "relu_grad.cuda");
  add_gradient<TanhGradFunction>(table, "TanhGrad", "tanh_grad.cuda");
  add_gradient<SigmoidGradFunction>(table, "SigmoidGrad", "sigmoid_grad.cuda");
  add_gradient<ErfGradFunction>(table, "ErfGrad", "erf_grad.cuda");
  for_float_types([&](auto* type) { add_parametric<Pointee<decltype(type)>>(table); });
}

}  // namespace trainscope::cuda
