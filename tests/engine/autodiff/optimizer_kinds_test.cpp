// Each optimizer over ten steps against its definition, written out anew for one parameter in f64:
// torch.optim.SGD and Adam, torch.optim.AdamW, transformers.AdamW, and LAMB as in its paper.
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "tests/engine/autodiff/optimizer_run.h"

namespace trainscope::test {
namespace {

constexpr int kSteps = 10;

// What one parameter's optimizer keeps between steps.
struct Kept {
  std::vector<double> a;
  std::vector<double> b;
};

struct StepOf {
  const OptimizerOptions& o;
  double rate;
  std::int64_t step;
};

using Vector = std::vector<double>;
using Rule = std::function<Vector(Vector p, const Vector& g, Kept& kept, const StepOf& s)>;

double norm(const Vector& v) {
  double sum = 0.0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

// The two moments of Adam, updated; the results are as the bias correction has them.
struct Moments {
  Vector m;
  Vector v;
};
Moments moments(const Vector& g, Kept& kept, const StepOf& s, bool corrected) {
  kept.a.resize(g.size(), 0.0);
  kept.b.resize(g.size(), 0.0);
  Moments now;
  const double t = static_cast<double>(s.step);
  const double c1 = corrected ? 1.0 - std::pow(s.o.beta1, t) : 1.0;
  const double c2 = corrected ? 1.0 - std::pow(s.o.beta2, t) : 1.0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    kept.a[i] = s.o.beta1 * kept.a[i] + (1.0 - s.o.beta1) * g[i];
    kept.b[i] = s.o.beta2 * kept.b[i] + (1.0 - s.o.beta2) * g[i] * g[i];
    now.m.push_back(kept.a[i] / c1);
    now.v.push_back(kept.b[i] / c2);
  }
  return now;
}

Vector nesterov(Vector p, const Vector& g, Kept& kept, const StepOf& s) {
  const bool first = kept.a.empty();
  kept.a.resize(p.size(), 0.0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double d = g[i] + s.o.weight_decay * p[i];
    kept.a[i] = first ? d : s.o.momentum * kept.a[i] + d;
    p[i] -= s.rate * (d + s.o.momentum * kept.a[i]);
  }
  return p;
}

Vector adam(Vector p, const Vector& g, Kept& kept, const StepOf& s) {
  Vector decayed = g;
  for (std::size_t i = 0; i < p.size(); ++i) decayed[i] += s.o.weight_decay * p[i];
  const Moments now = moments(decayed, kept, s, s.o.bias_correction);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] -= s.rate * now.m[i] / (std::sqrt(now.v[i]) + s.o.epsilon);
  }
  return p;
}

Vector adamw(Vector p, const Vector& g, Kept& kept, const StepOf& s) {
  const Moments now = moments(g, kept, s, s.o.bias_correction);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] -= s.rate * s.o.weight_decay * p[i];
    p[i] -= s.rate * now.m[i] / (std::sqrt(now.v[i]) + s.o.epsilon);
  }
  return p;
}

// transformers.AdamW: the root is corrected after epsilon was added, the decay comes last.
Vector adamw_hf(Vector p, const Vector& g, Kept& kept, const StepOf& s) {
  moments(g, kept, s, false);
  double size = s.rate;
  if (s.o.bias_correction) {
    const double t = static_cast<double>(s.step);
    size *= std::sqrt(1.0 - std::pow(s.o.beta2, t)) / (1.0 - std::pow(s.o.beta1, t));
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] -= size * kept.a[i] / (std::sqrt(kept.b[i]) + s.o.epsilon);
    p[i] -= s.rate * s.o.weight_decay * p[i];
  }
  return p;
}

Vector lamb(Vector p, const Vector& g, Kept& kept, const StepOf& s) {
  const Moments now = moments(g, kept, s, s.o.bias_correction);
  Vector u;
  for (std::size_t i = 0; i < p.size(); ++i) {
    u.push_back(now.m[i] / (std::sqrt(now.v[i]) + s.o.epsilon) + s.o.weight_decay * p[i]);
  }
  double ratio = 1.0;
  if (norm(p) > 0.0 && norm(u) > 0.0) {
    ratio = std::clamp(norm(p) / norm(u), s.o.ratio_min, s.o.ratio_max);
  }
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= s.rate * ratio * u[i];
  return p;
}

// Ten steps of the graph; each starts from the graph's own last one.
void check(const OptimizerOptions& o, const Rule& rule) {
  Run run(step_graph(training(o)));
  std::map<std::string, Kept> kept;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    CAPTURE(step);
    const double rate = 0.05 / static_cast<double>(step);
    run.one(rate);
    for (const std::string name : {"w", "b"}) {
      const Vector expected = rule(run.value(name), run.gradient(name), kept[name],
                                   {.o = o, .rate = rate, .step = step});
      CHECK(worst(run.next(name), expected) < kLimit);
      CHECK(worst(run.next(name), run.value(name)) > 1e-6);
    }
    run.advance();
  }
}

}  // namespace

TEST_CASE("optimizers: SGD with Nesterov momentum") {
  for (const double decay : {0.0, 0.02}) {
    check({.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true, .weight_decay = decay},
          nesterov);
  }
}

TEST_CASE("optimizers: Adam decays through the gradient") {
  check({.kind = OptimizerKind::kAdam, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6}, adam);
  check({.kind = OptimizerKind::kAdam, .weight_decay = 0.1}, adam);
}

TEST_CASE("optimizers: AdamW in PyTorch's form") {
  check({.kind = OptimizerKind::kAdamW, .beta2 = 0.95, .weight_decay = 0.1}, adamw);
}

TEST_CASE("optimizers: AdamW in the form of Hugging Face") {
  // A large epsilon tells the two forms apart.
  check({.kind = OptimizerKind::kAdamWHuggingFace, .epsilon = 1e-2, .weight_decay = 0.1}, adamw_hf);
  Run torch(step_graph(training({.epsilon = 1e-2, .weight_decay = 0.1})));
  Run other(step_graph(
      training({.kind = OptimizerKind::kAdamWHuggingFace, .epsilon = 1e-2, .weight_decay = 0.1})));
  torch.one(0.05);
  other.one(0.05);
  CHECK(worst(torch.next("w"), other.next("w")) > 1e-6);
}

TEST_CASE("optimizers: LAMB scales each parameter's update by its norm") {
  check({.kind = OptimizerKind::kLamb, .epsilon = 1e-6, .weight_decay = 0.1}, lamb);
  check({.kind = OptimizerKind::kLamb, .ratio_min = 0.3, .ratio_max = 0.4}, lamb);
}

TEST_CASE("optimizers: without bias correction") {
  const auto without = [](OptimizerKind kind) {
    return OptimizerOptions{.kind = kind, .bias_correction = false, .weight_decay = 0.1};
  };
  check(without(OptimizerKind::kAdam), adam);
  check(without(OptimizerKind::kAdamW), adamw);
  check(without(OptimizerKind::kAdamWHuggingFace), adamw_hf);
  check(without(OptimizerKind::kLamb), lamb);
}

TEST_CASE("optimizers: a LAMB parameter of zeros moves by the plain update") {
  Run run(step_graph(training({.kind = OptimizerKind::kLamb})));
  Tensor& zeros = run.inputs.at("b");
  std::ranges::fill(zeros.values<double>(), 0.0);
  run.one(0.05);
  for (double element : run.next("b")) CHECK(std::abs(element) == doctest::Approx(0.05));
}

TEST_CASE("optimizers: groups have their own rate and decay in every kind") {
  for (OptimizerKind kind : kOptimizerKinds) {
    CAPTURE(name_of(kind));
    const auto next = [&](const std::vector<ParameterGroup>& groups, double decay) {
      Run run(step_graph(training({.kind = kind, .weight_decay = decay, .groups = groups})));
      run.one(0.05);
      return std::pair{run.next("w"), run.next("b")};
    };
    const std::vector<ParameterGroup> of_b = {
        {.pattern = "b", .weight_decay = 0.3, .learning_rate_scale = 0.0}};
    const auto plain = next({}, 0.1);
    const auto grouped = next(of_b, 0.1);
    CHECK(worst(grouped.first, plain.first) == 0.0);
    Run start(step_graph(training({.kind = kind})));
    CHECK(worst(grouped.second, start.value("b")) == 0.0);  // a rate of 0
    const auto decayed = next({{.pattern = "b", .weight_decay = 0.3}}, 0.1);
    const auto all = next({}, 0.3);
    CHECK(worst(decayed.second, all.second) == 0.0);
    CHECK(worst(decayed.first, plain.first) == 0.0);
  }
}

}  // namespace trainscope::test
