// Gelu, Swish and their gradients: x * gate(x), one pass over memory.
#include <cmath>
#include <variant>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kGrain = 8192;  // elements worth a thread: about 1 ns for each

// --- Gelu by erf: x * cdf(x) of the normal distribution; its slope is cdf(x) + x * density(x) ----

// The normal distribution at x: its cdf and e^(-x^2 / 2), from which its density is one product.
template <class T>
struct Normal {
  T cdf;
  T power;
};

// The tail at |x| is power * s p(s) with s = 1 / (1 + 0.26 |x|), p a minimax polynomial (relative
// error 3e-8); the form is that of Hastings, "Approximations for Digital Computers" (1955).
inline Normal<float> normal_at(float x) {
  const float power = vector_exp(-0.5F * x * x);
  const float s = 1.0F / (1.0F + 0.26F * std::fabs(x));
  float p = 0.0305049418F;
  p = p * s - 0.152829101F;
  p = p * s + 0.251491857F;
  p = p * s - 0.150949605F;
  p = p * s + 0.16094829F;
  p = p * s + 0.051027502F;
  p = p * s + 0.103030298F;
  p = p * s + 0.103016745F;
  p = p * s + 0.10375906F;
  const float tail = power * (p * s);
  return {.cdf = x < 0.0F ? tail : 1.0F - tail, .power = power};
}
// erfc keeps its digits where 1 + erf would lose them.
inline Normal<double> normal_at(double x) {
  return {.cdf = 0.5 * std::erfc(x * -0.70710678118654752440), .power = std::exp(-0.5 * x * x)};
}

struct GeluFunction {
  static constexpr std::int64_t kGrain = cpu::kGrain;
  template <class T>
  static T apply(T x) {
    return x * normal_at(x).cdf;
  }
};

struct GeluGradFunction {
  static constexpr std::int64_t kGrain = cpu::kGrain;
  template <class T>
  static T apply(T dy, T x) {
    constexpr T kInverseRootTwoPi = static_cast<T>(0.39894228040143267794);
    const Normal<T> normal = normal_at(x);
    return dy * (normal.cdf + x * (kInverseRootTwoPi * normal.power));
  }
};

// --- Sigmoids: Gelu by tanh, because 0.5 (1 + tanh(u)) is the sigmoid of 2u, and Swish -----------

// sigmoid(v) and its slope. From 1 - sigmoid the slope would lose its digits for a large v.
template <class T>
struct Gate {
  T value;
  T slope;
  explicit Gate(T v) {
    const T power = vector_exp(-std::fabs(v));
    const T larger = T(1) / (T(1) + power);
    const T smaller = power * larger;
    value = v < T(0) ? smaller : larger;
    slope = larger * smaller;
  }
};

// v within +-limit, where the sigmoid is 0 or 1 in f64 too: larger ones may overflow. A NaN passes.
template <class T>
T bounded(T v, T limit) {
  const T below = v > limit ? limit : v;
  return below < -limit ? -limit : below;
}

// 2u = 2 sqrt(2/pi) (x + 0.044715 x^3)
template <class T>
struct TanhArgument {
  static constexpr T kTwiceSlope = static_cast<T>(1.5957691216057307117597842397375);
  static constexpr T kCubic = static_cast<T>(0.044715);
  T x;
  T square = x * x;

  explicit TanhArgument(T any) : x(bounded(any, T(30))) {}
  T value() const { return kTwiceSlope * (x + kCubic * (square * x)); }
  T slope() const { return kTwiceSlope * (T(1) + T(3) * kCubic * square); }
};

struct GeluTanhFunction {
  static constexpr std::int64_t kGrain = cpu::kGrain;
  template <class T>
  static T apply(T x) {
    return x * vector_sigmoid(TanhArgument<T>(x).value());
  }
};

struct GeluTanhGradFunction {
  static constexpr std::int64_t kGrain = cpu::kGrain;
  template <class T>
  static T apply(T dy, T x) {
    const TanhArgument<T> argument(x);
    const Gate<T> gate(argument.value());
    return dy * (gate.value + argument.x * gate.slope * argument.slope());
  }
};

template <class T>
void run_gelu(const RunArgs& run) {
  const bool by_tanh = std::get<GeluParams>(run.params).by_tanh;
  (by_tanh ? run_unary<T, GeluTanhFunction> : run_unary<T, GeluFunction>)(run);
}

template <class T>
void run_gelu_grad(const RunArgs& run) {
  const bool by_tanh = std::get<GeluParams>(run.params).by_tanh;
  (by_tanh ? run_pairwise<T, GeluTanhGradFunction> : run_pairwise<T, GeluGradFunction>)(run);
}

// --- Swish ---------------------------------------------------------------------------------------

template <class T>
T alpha_of(const RunArgs& run) {
  return static_cast<T>(std::get<AlphaParams>(run.params).alpha);
}

template <class T>
void run_swish(const RunArgs& run) {
  using C = Computed<T>;
  map_elements<T>(run, kGrain,
                  [alpha = alpha_of<C>(run)](C x) { return x * vector_sigmoid(alpha * x); });
}

template <class T>
void run_swish_grad(const RunArgs& run) {
  using C = Computed<T>;
  map_pairs<T>(run, kGrain, [alpha = alpha_of<C>(run)](C dy, C x) {
    const C scaled = bounded(alpha * x, C(800));
    const Gate<C> gate(scaled);
    return dy * (gate.value + scaled * gate.slope);
  });
}

template <class T>
void add_own(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  table.add("Gelu", dtype, {.name = "gelu", .run = run_gelu<T>});
  table.add("GeluGrad", dtype, {.name = "gelu_grad", .run = run_gelu_grad<T>});
  table.add("Swish", dtype, {.name = "swish", .run = run_swish<T>});
  table.add("SwishGrad", dtype, {.name = "swish_grad", .run = run_swish_grad<T>});
}

}  // namespace

void add_gated(KernelTable& table) {
  add_own<float>(table);
  add_own<double>(table);
  add_own<BFloat16>(table);
  add_own<Float16>(table);
}

}  // namespace trainscope::cpu
