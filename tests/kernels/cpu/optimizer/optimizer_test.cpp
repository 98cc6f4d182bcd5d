// Optimizer steps against their formulas written plainly, in double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/cpu/view_runner.h"

namespace trainscope::cpu {

void add_optimizer(KernelTable& table);

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

KernelTable optimizer_table() {
  KernelTable table;
  add_optimizer(table);
  return table;
}

// Two parameters of sizes 2 and 1 (the second a scalar), their gradients and two states each, all
// updated in place, as the memory plan has it.
struct Model {
  std::vector<double> p0 = {1.0, -2.0}, p1 = {0.5};
  std::vector<double> g0 = {0.25, 4.0}, g1 = {-3.0};
  std::vector<double> m0 = {0.0, 0.0}, m1 = {0.0};
  std::vector<double> v0 = {0.0, 0.0}, v1 = {0.0};
  double learning_rate = 0.1;
  double gradient_scale = 0.5;

  TensorView first(std::vector<double>& v) { return view_of(v, {2}); }
  TensorView second(std::vector<double>& v) { return view_of(v, {}); }
};

void adamw_step(Model& model, const OptimizerParams& params, std::int64_t step) {
  const TensorView p[2] = {model.first(model.p0), model.second(model.p1)};
  const TensorView m[2] = {model.first(model.m0), model.second(model.m1)};
  const TensorView v[2] = {model.first(model.v0), model.second(model.v1)};
  run_on_views(optimizer_table(),
               {.op = "AdamWStep",
                .dtype = DType::kF64,
                .params = params,
                .inputs = {p[0], p[1], model.first(model.g0), model.second(model.g1), m[0], m[1],
                           v[0], v[1], scalar_view(model.learning_rate),
                           scalar_view(model.gradient_scale), scalar_view(step)},
                .outputs = {p[0], p[1], m[0], m[1], v[0], v[1]}});
}

void sgd_step(Model& model, const OptimizerParams& params, std::int64_t step) {
  const TensorView p[2] = {model.first(model.p0), model.second(model.p1)};
  const TensorView b[2] = {model.first(model.m0), model.second(model.m1)};
  run_on_views(optimizer_table(),
               {.op = "SgdStep",
                .dtype = DType::kF64,
                .params = params,
                .inputs = {p[0], p[1], model.first(model.g0), model.second(model.g1), b[0], b[1],
                           scalar_view(model.learning_rate), scalar_view(model.gradient_scale),
                           scalar_view(step)},
                .outputs = {p[0], p[1], b[0], b[1]}});
}

}  // namespace

TEST_CASE("AdamWStep: two steps of the formula, decay and rate per parameter") {
  const OptimizerParams params{.weight_decay = {0.1, 0.0},
                               .learning_rate_scale = {1.0, 0.5},
                               .beta1 = 0.8,
                               .beta2 = 0.9,
                               .epsilon = 1e-3};
  Model model;
  double p[2] = {1.0, 0.5};
  double m[2] = {0.0, 0.0};
  double v[2] = {0.0, 0.0};
  const double gradients[2] = {0.125, -1.5};
  for (int t = 1; t <= 2; ++t) {
    adamw_step(model, params, t);
    for (std::size_t i = 0; i < 2; ++i) {
      const double rate = 0.1 * params.learning_rate_scale[i];
      p[i] *= 1.0 - rate * params.weight_decay[i];
      m[i] = 0.8 * m[i] + 0.2 * gradients[i];
      v[i] = 0.9 * v[i] + 0.1 * gradients[i] * gradients[i];
      p[i] -= rate * (m[i] / (1 - std::pow(0.8, t))) /
              (std::sqrt(v[i] / (1 - std::pow(0.9, t))) + 1e-3);
    }
    CHECK(model.p0[0] == doctest::Approx(p[0]).epsilon(1e-14));
    CHECK(model.p1[0] == doctest::Approx(p[1]).epsilon(1e-14));
    CHECK(model.m0[0] == doctest::Approx(m[0]).epsilon(1e-14));
    CHECK(model.v1[0] == doctest::Approx(v[1]).epsilon(1e-14));
  }
}

TEST_CASE("SgdStep: the first step ignores the buffer, later ones use the momentum") {
  const OptimizerParams params{
      .weight_decay = {0.5, 0.0}, .learning_rate_scale = {1.0, 2.0}, .momentum = 0.9};
  Model model;
  model.m0 = {kNaN, kNaN};
  sgd_step(model, params, 1);
  CHECK(model.m0[0] == doctest::Approx(0.125 + 0.5));
  CHECK(model.p0[0] == doctest::Approx(1.0 - 0.1 * 0.625));
  CHECK(model.p1[0] == doctest::Approx(0.5 + 0.2 * 1.5));
  sgd_step(model, params, 2);
  const double buffer = 0.9 * 0.625 + 0.125 + 0.5 * (1.0 - 0.0625);
  CHECK(model.m0[0] == doctest::Approx(buffer));
  CHECK(model.p0[0] == doctest::Approx(0.9375 - 0.1 * buffer));
}

TEST_CASE("SgdStep: without momentum there are no buffers") {
  Model model;
  std::int64_t step = 1;
  run_on_views(
      optimizer_table(),
      {.op = "SgdStep",
       .dtype = DType::kF64,
       .params = OptimizerParams{.weight_decay = {0.0}, .learning_rate_scale = {1.0}},
       .inputs = {model.first(model.p0), model.first(model.g0), scalar_view(model.learning_rate),
                  scalar_view(model.gradient_scale), scalar_view(step)},
       .outputs = {model.first(model.p0)}});
  CHECK(model.p0[1] == doctest::Approx(-2.0 - 0.1 * 2.0));
}

TEST_CASE("GlobalNorm and GradientScale: clipping composes with accumulated gradients") {
  const KernelTable table = optimizer_table();
  std::vector<double> a = {3.0, 0.0};
  std::vector<double> b = {4.0};
  double norm = 0.0;
  run_on_views(table, {.op = "GlobalNorm",
                       .dtype = DType::kF64,
                       .params = ClipParams{.divisor = 2.0},
                       .inputs = {view_of(a, {2}), view_of(b, {})},
                       .outputs = {scalar_view(norm)}});
  CHECK(norm == 2.5);
  const auto scale_of = [&table](double value, double max_norm, double divisor) {
    double scale = 0.0;
    run_on_views(table, {.op = "GradientScale",
                         .dtype = DType::kF64,
                         .params = ClipParams{.max_norm = max_norm, .divisor = divisor},
                         .inputs = {scalar_view(value)},
                         .outputs = {scalar_view(scale)}});
    return scale;
  };
  CHECK(scale_of(2.5, 1.0, 2.0) == doctest::Approx(0.4 / 2.0).epsilon(1e-6));
  CHECK(scale_of(0.5, 1.0, 2.0) == 0.5);
  CHECK(scale_of(2.5, 0.0, 4.0) == 0.25);
  CHECK(std::isnan(scale_of(kNaN, 1.0, 1.0)));
}

TEST_CASE("Accumulate: micro-step 0 begins anew whatever the sum held") {
  for (std::int64_t micro_step : {0, 1, 2}) {
    std::vector<float> sum = {1.0F, 2.0F};
    std::vector<float> gradient = {10.0F, 20.0F};
    if (micro_step == 0) sum[0] = std::numeric_limits<float>::quiet_NaN();
    const TensorView sum_view = view_of(sum, {2});
    run_on_views(optimizer_table(),
                 {.op = "Accumulate",
                  .dtype = DType::kF32,
                  .params = NoParams{},
                  .inputs = {sum_view, view_of(gradient, {2}), scalar_view(micro_step)},
                  .outputs = {sum_view}});
    CHECK(sum[0] == (micro_step == 0 ? 10.0F : 11.0F));
    CHECK(sum[1] == (micro_step == 0 ? 20.0F : 22.0F));
  }
}

}  // namespace trainscope::cpu
