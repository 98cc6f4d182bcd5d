// Gelu, Swish and their gradients: exact values, far ends, and accuracy in f32.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

template <class T>
std::vector<T> run(std::string_view op, const Params& params, const std::vector<T>& x) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  std::vector<Literal> inputs{Literal::of(shape, x)};
  // Gradients: of dy = 1.
  if (op.ends_with("Grad"))
    inputs = {Literal::of(shape, std::vector<T>(x.size(), T(1))), inputs[0]};
  return call({.op = op,
               .key = kDTypeOf<T>,
               .params = params,
               .inputs = inputs,
               .outputs = {{.dtype = kDTypeOf<T>, .shape = shape}}})[0]
      .template values<T>();
}

struct Activation {
  std::string_view op;
  std::string_view gradient;
  Params params;
  double (*exact)(double);
  double (*slope)(double);
};

double cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double tanh_gate(double x) {
  return 0.5 * (1.0 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
// The slope of x * gate(x).
double slope_of(double (*gate)(double), double x) {
  const double step = 1e-5;
  return gate(x) + x * (gate(x + step) - gate(x - step)) / (2.0 * step);
}

const Activation kActivations[] = {
    {"Gelu", "GeluGrad", GeluParams{.by_tanh = false}, [](double x) { return x * cdf(x); },
     [](double x) { return slope_of(cdf, x); }},
    {"Gelu", "GeluGrad", GeluParams{.by_tanh = true}, [](double x) { return x * tanh_gate(x); },
     [](double x) { return slope_of(tanh_gate, x); }},
    {"Swish", "SwishGrad", AlphaParams{.alpha = 1.702},
     [](double x) { return x * sigmoid(1.702 * x); },
     [](double x) { return slope_of([](double v) { return sigmoid(1.702 * v); }, x); }},
};

std::vector<double> spread() {
  std::vector<double> x;
  for (int i = -1200; i <= 1200; ++i) x.push_back(0.01 * i + 0.003);
  return x;
}

}  // namespace

TEST_CASE("gated: f64 follows the definitions, f32 follows f64") {
  const std::vector<double> x = spread();
  const std::vector<float> x32(x.begin(), x.end());
  for (const Activation& each : kActivations) {
    CAPTURE(each.op);
    const std::vector<double> y = run<double>(each.op, each.params, x);
    const std::vector<double> slope = run<double>(each.gradient, each.params, x);
    const std::vector<float> y32 = run<float>(each.op, each.params, x32);
    const std::vector<float> slope32 = run<float>(each.gradient, each.params, x32);
    double worst = 0.0;
    double worst_slope = 0.0;
    double worst_f32 = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::fabs(y[i] - each.exact(x[i])));
      worst_slope = std::max(worst_slope, std::fabs(slope[i] - each.slope(x[i])));
      worst_f32 =
          std::max({worst_f32,
                    std::fabs(static_cast<double>(y32[i]) - y[i]) / std::max(1.0, std::fabs(x[i])),
                    std::fabs(static_cast<double>(slope32[i]) - slope[i])});
    }
    CHECK(worst < 1e-14);
    CHECK(worst_slope < 1e-9);  // the differences' own error
    CHECK(worst_f32 < 8e-7);    // x is rounded to f32 too
  }
}

TEST_CASE("gated: far from 0 a gate is shut or open, and nothing overflows") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{-3e38F, -1e20F, -200.0F, 200.0F, 1e20F, 3e38F, nan};
  for (const Activation& each : kActivations) {
    CAPTURE(each.op);
    const std::vector<float> y = run<float>(each.op, each.params, x);
    const std::vector<float> slope = run<float>(each.gradient, each.params, x);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(std::fabs(y[i]) == 0.0F);
      CHECK(std::fabs(slope[i]) == 0.0F);
      CHECK(y[i + 3] == x[i + 3]);
      CHECK(slope[i + 3] == 1.0F);
    }
    CHECK(std::isnan(y[6]));
    CHECK(std::isnan(slope[6]));
  }
}

}  // namespace trainscope::cpu
