// Gelu, Swish and their gradients: x * gate(x), one pass over memory.
#include <cmath>
#include <variant>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

// --- Gelu by erf: x * cdf(x) of the normal distribution; its slope is cdf(x) + x * density(x) ----

// erfc keeps its digits where 1 + erf would lose them.
template <class T>
__device__ T normal_cdf(T x) {
  return T(0.5) * std::erfc(x * static_cast<T>(-0.70710678118654752440));
}

struct GeluFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return x * normal_cdf(x);
  }
};

struct GeluGradFunction {
  template <class T>
  __device__ T operator()(T dy, T x) const {
    constexpr T kInverseRootTwoPi = static_cast<T>(0.39894228040143267794);
    const T density = kInverseRootTwoPi * std::exp(T(-0.5) * x * x);
    return dy * (normal_cdf(x) + x * density);
  }
};

// --- Sigmoids: Gelu by tanh, because 0.5 (1 + tanh(u)) is the sigmoid of 2u, and Swish -----------

// sigmoid(v) and its slope. From 1 - sigmoid the slope would lose its digits for a large v.
template <class T>
struct Gate {
  T value;
  T slope;
  __device__ explicit Gate(T v) {
    const T power = std::exp(-std::fabs(v));
    const T larger = T(1) / (T(1) + power);
    const T smaller = power * larger;
    value = v < T(0) ? smaller : larger;
    slope = larger * smaller;
  }
};

// v within +-limit, where the sigmoid is 0 or 1 in f64 too: larger ones may overflow. A NaN passes.
template <class T>
__device__ T bounded(T v, T limit) {
  const T below = v > limit ? limit : v;
  return below < -limit ? -limit : below;
}

// 2u = 2 sqrt(2/pi) (x + 0.044715 x^3)
template <class T>
struct TanhArgument {
  static constexpr T kTwiceSlope = static_cast<T>(1.5957691216057307117597842397375);
  static constexpr T kCubic = static_cast<T>(0.044715);
  T x;
  T square;

  __device__ explicit TanhArgument(T any) : x(bounded(any, T(30))), square(x * x) {}
  __device__ T value() const { return kTwiceSlope * (x + kCubic * (square * x)); }
  __device__ T slope() const { return kTwiceSlope * (T(1) + T(3) * kCubic * square); }
};

struct GeluTanhFunction {
  template <class T>
  __device__ T operator()(T x) const {
    return x * Gate<T>(TanhArgument<T>(x).value()).value;
  }
};

struct GeluTanhGradFunction {
  template <class T>
  __device__ T operator()(T dy, T x) const {
    const TanhArgument<T> argument(x);
    const Gate<T> gate(argument.value());
    return dy * (gate.value + argument.x * gate.slope * argument.slope());
  }
};

template <class T>
void run_gelu(const RunArgs& run) {
  if (std::get<GeluParams>(run.params).by_tanh) return run_unary<T, GeluTanhFunction>(run);
  run_unary<T, GeluFunction>(run);
}

template <class T>
void run_gelu_grad(const RunArgs& run) {
  if (std::get<GeluParams>(run.params).by_tanh) return run_pairwise<T, GeluTanhGradFunction>(run);
  run_pairwise<T, GeluGradFunction>(run);
}

// --- Swish ---------------------------------------------------------------------------------------

template <class C>
struct SwishFunction {
  C alpha;
  __device__ C operator()(C x) const { return x * Gate<C>(alpha * x).value; }
};

template <class C>
struct SwishGradFunction {
  C alpha;
  __device__ C operator()(C dy, C x) const {
    const C scaled = bounded(alpha * x, C(800));
    const Gate<C> gate(scaled);
    return dy * (gate.value + scaled * gate.slope);
  }
};

template <class T>
auto alpha_of(const RunArgs& run) {
  return static_cast<Computed<T>>(std::get<AlphaParams>(run.params).alpha);
}

template <class T>
void run_swish(const RunArgs& run) {
  map_elements<T, T>(run, SwishFunction<Computed<T>>{alpha_of<T>(run)});
}

template <class T>
void run_swish_grad(const RunArgs& run) {
  map_elements<T, T, T>(run, SwishGradFunction<Computed<T>>{alpha_of<T>(run)});
}

}  // namespace

void add_gated(KernelTable& table) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    const DType dtype = kDTypeOf<T>;
    table.add("Gelu", dtype, {.name = "gelu.cuda", .run = run_gelu<T>});
    table.add("GeluGrad", dtype, {.name = "gelu_grad.cuda", .run = run_gelu_grad<T>});
    table.add("Swish", dtype, {.name = "swish.cuda", .run = run_swish<T>});
    table.add("SwishGrad", dtype, {.name = "swish_grad.cuda", .run = run_swish_grad<T>});
  });
}

}  // namespace trainscope::cuda
