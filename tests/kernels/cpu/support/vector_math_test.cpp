// Polynomial functions, as the kernels vectorise them, against the C library in double.
#include "kernels/cpu/support/vector_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

using F32 = std::vector<float>;

F32 apply(std::string_view op, const F32& x) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  return call({.op = op,
               .params = AlphaParams{.alpha = 1.0},
               .inputs = {Literal::of(shape, x)},
               .outputs = {{.dtype = DType::kF32, .shape = shape}}})[0]
      .values<float>();
}

// Floats of all magnitudes and both signs, every 2503rd of them.
F32 spread_floats(float limit) {
  F32 values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 2503) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::fabs(x) < limit) values.push_back(x);
  }
  return values;
}

// Distance to the exact value in units of the last place of a float near it.
double ulps(float got, double exact) {
  if (static_cast<float>(exact) == got) return 0.0;
  const int exponent = exact == 0.0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::fabs(static_cast<double>(got) - exact) / std::ldexp(1.0, exponent - 23);
}

template <class Exact>
double worst_ulps(std::string_view op, float limit, Exact exact) {
  const F32 x = spread_floats(limit);
  const F32 y = apply(op, x);
  double worst = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, ulps(y[i], exact(static_cast<double>(x[i]))));
  }
  return worst;
}

}  // namespace

TEST_CASE("vector_math: floats are within 2 ulp of the exact values") {
  CHECK(worst_ulps("Exp", 88.7F, [](double x) { return std::exp(x); }) < 2.0);
  CHECK(worst_ulps("Tanh", kInfinity, [](double x) { return std::tanh(x); }) < 2.0);
  CHECK(worst_ulps("Erf", kInfinity, [](double x) { return std::erf(x); }) < 2.0);
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  CHECK(worst_ulps("Sigmoid", 87.0F, sigmoid) < 3.0);
  const auto elu = [](double x) { return x > 0.0 ? x : std::expm1(x); };
  CHECK(worst_ulps("Elu", kInfinity, elu) < 2.0);
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  };
  CHECK(worst_ulps("Softplus", 87.0F, softplus) < 4.0);
}

TEST_CASE("vector_math: e^x of what is not positive is 0 where a softmax loses it") {
  double worst = 0.0;
  for (const float x : spread_floats(87.6F)) {
    if (x > 0.0F) continue;
    worst = std::max(worst, ulps(vector_exp_of_negative(x), std::exp(static_cast<double>(x))));
  }
  CHECK(worst < 2.0);
  CHECK(vector_exp_of_negative(0.0F) == 1.0F);
  for (const float x : {-88.0F, -1e9F, -kInfinity}) CHECK(vector_exp_of_negative(x) == 0.0F);
  CHECK(std::isnan(vector_exp_of_negative(kNaN)));
}

TEST_CASE("vector_math: limits at infinity, zero beyond the range, NaN stays") {
  CHECK(apply("Exp", {kInfinity, 89.0F, -kInfinity, -104.5F, 0.0F}) ==
        F32{kInfinity, kInfinity, 0.0F, 0.0F, 1.0F});
  CHECK(apply("Tanh", {kInfinity, -kInfinity, 0.0F}) == F32{1.0F, -1.0F, 0.0F});
  CHECK(apply("Erf", {kInfinity, -kInfinity, 0.0F}) == F32{1.0F, -1.0F, 0.0F});
  CHECK(apply("Sigmoid", {kInfinity, -kInfinity, 0.0F}) == F32{1.0F, 0.0F, 0.5F});
  CHECK(apply("Elu", {kInfinity, -kInfinity, 0.0F, -30.0F}) == F32{kInfinity, -1.0F, 0.0F, -1.0F});
  CHECK(apply("Softplus", {kInfinity, -kInfinity, 200.0F}) == F32{kInfinity, 0.0F, 200.0F});
  for (std::string_view op : {"Exp", "Tanh", "Erf", "Sigmoid", "Elu", "Softplus", "Softsign"}) {
    CHECK(std::isnan(apply(op, {kNaN})[0]));
  }
}

}  // namespace trainscope::cpu
