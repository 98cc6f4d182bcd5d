// Arithmetic of floats. What PTX calls approximate is rounded from the exact result here.
#include <bit>
#include <cfenv>
#include <cmath>

#include "tests/cuda/interpreter/lanewise.h"

namespace trainscope::ptx {
namespace {

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Subtract {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct MultiplyAdd {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
template <int kMode>
struct MultiplyAddRounded {
  template <typename T>
  T operator()(T a, T b, T c) const {
    std::fesetround(kMode);
    const T result = std::fma(a, b, c);
    std::fesetround(FE_TONEAREST);
    return result;
  }
};
template <int kMode>
struct AddRounded {
  template <typename T>
  T operator()(T a, T b) const {
    return MultiplyAddRounded<kMode>()(a, T{1}, b);
  }
};
// The one that is a number; -0 is less than +0.
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    if (a == b) return std::signbit(a) ? a : b;
    return std::isnan(b) || a < b ? a : b;
  }
};
struct Largest {
  template <typename T>
  T operator()(T a, T b) const {
    if (a == b) return std::signbit(a) ? b : a;
    return std::isnan(b) || b < a ? a : b;
  }
};
struct Negate {
  template <typename T>
  T operator()(T a) const {
    return -a;
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
struct SquareRoot {
  template <typename T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Reciprocal {
  template <typename T>
  T operator()(T a) const {
    return T{1} / a;
  }
};
struct InverseRoot {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
struct PowerOfTwo {
  float operator()(float a) const { return static_cast<float>(std::exp2(static_cast<double>(a))); }
};
struct LogarithmOfTwo {
  float operator()(float a) const { return static_cast<float>(std::log2(static_cast<double>(a))); }
};
struct Sine {
  float operator()(float a) const { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct Cosine {
  float operator()(float a) const { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct HyperbolicTangent {
  float operator()(float a) const { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
// Subnormal operands and results are zeros of their sign.
template <typename F>
struct Flushed {
  static float flush(float a) {
    return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0F, a) : a;
  }
  template <typename... T>
  float operator()(T... a) const {
    return flush(F()(flush(a)...));
  }
};
struct CopySign {  // of the first operand to the second
  template <typename T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};
// The high half of 1 / a, of which Newton's steps make the rest.
struct ReciprocalHigh {
  double operator()(double a) const {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / a) & 0xFFFFFFFF00000000U);
  }
};
struct InverseRootHigh {
  double operator()(double a) const {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(InverseRoot()(a)) &
                                 0xFFFFFFFF00000000U);
  }
};

template <typename T>
void add_type(OpcodeTable& table, const std::string& type) {
  for (const std::string& rounding : {std::string(".rn."), std::string(".")}) {
    table["add" + rounding + type] = {run_binary<Add, T>};
    table["sub" + rounding + type] = {run_binary<Subtract, T>};
    table["mul" + rounding + type] = {run_binary<Multiply, T>};
  }
  table["div.rn." + type] = {run_binary<Divide, T>};
  table["fma.rn." + type] = {run_ternary<MultiplyAdd, T>};
  table["fma.rm." + type] = {run_ternary<MultiplyAddRounded<FE_DOWNWARD>, T>};
  table["fma.rp." + type] = {run_ternary<MultiplyAddRounded<FE_UPWARD>, T>};
  table["fma.rz." + type] = {run_ternary<MultiplyAddRounded<FE_TOWARDZERO>, T>};
  table["add.rz." + type] = {run_binary<AddRounded<FE_TOWARDZERO>, T>};
  table["min." + type] = {run_binary<Least, T>};
  table["max." + type] = {run_binary<Largest, T>};
  table["neg." + type] = {run_unary<Negate, T>};
  table["abs." + type] = {run_unary<Absolute, T>};
  table["copysign." + type] = {run_binary<CopySign, T>};
  table["sqrt.rn." + type] = {run_unary<SquareRoot, T>};
  table["rcp.rn." + type] = {run_unary<Reciprocal, T>};
}

template <typename F>
void add_approximate(OpcodeTable& table, const std::string& name) {
  table[name + ".approx.f32"] = {run_unary<F, float>};
  table[name + ".approx.ftz.f32"] = {run_unary<Flushed<F>, float>};
}

}  // namespace

void add_float_opcodes(OpcodeTable& table) {
  add_type<float>(table, "f32");
  add_type<double>(table, "f64");
  table["div.full.f32"] = {run_binary<Divide, float>};
  table["div.approx.f32"] = {run_binary<Divide, float>};
  table["div.approx.ftz.f32"] = {run_binary<Flushed<Divide>, float>};
  add_approximate<SquareRoot>(table, "sqrt");
  add_approximate<Reciprocal>(table, "rcp");
  add_approximate<InverseRoot>(table, "rsqrt");
  add_approximate<PowerOfTwo>(table, "ex2");
  add_approximate<LogarithmOfTwo>(table, "lg2");
  add_approximate<Sine>(table, "sin");
  add_approximate<Cosine>(table, "cos");
  table["tanh.approx.f32"] = {run_unary<HyperbolicTangent, float>};
  table["rcp.approx.ftz.f64"] = {run_unary<ReciprocalHigh, double>};
  table["rsqrt.approx.ftz.f64"] = {run_unary<InverseRootHigh, double>};
}

}  // namespace trainscope::ptx
