// Training issues of ONNX Runtime's tracker, each reproduced by a small model: it compiles for
// training, its loss is that of other engines, its gradients are those of central differences, and
// the loss falls.
#include "tests/engine/models/ort_issues.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/core/error.h"

namespace trainscope::test {
namespace {

constexpr double kGradientLimit = 1e-6;  // |gradient - differences| / |differences|
constexpr double kDifference = 1e-5;     // to each side
constexpr double kLossLimit = 1e-6;      // |loss / loss there - 1|
constexpr int kTrainingSteps = 60;

// A step uses the bytes of its inputs for other values once they are read.
double loss_now(Executor& executor, const Batch& batch) {
  bind_step(executor, batch);
  executor.run_micro_step();
  return read_loss(executor);
}

// The gradient of a parameter by central differences, element by element.
std::vector<double> differences_of(Executor& executor, const Batch& batch,
                                   const std::string& parameter) {
  const Tensor start = executor.read(parameter);
  std::vector<double> slopes;
  for (std::int64_t i = 0; i < start.elements(); ++i) {
    double losses[2] = {};
    for (int side : {0, 1}) {
      Tensor moved = start;
      moved.values<double>()[static_cast<std::size_t>(i)] += side == 0 ? -kDifference : kDifference;
      executor.write(parameter, moved);
      losses[side] = loss_now(executor, batch);
    }
    slopes.push_back((losses[1] - losses[0]) / (2.0 * kDifference));
  }
  executor.write(parameter, start);
  return slopes;
}

// The distance of two gradients by the size of the second.
double relative_distance(std::span<const double> gradient, std::span<const double> expected) {
  REQUIRE(gradient.size() == expected.size());
  double distance = 0.0, size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    distance += (gradient[i] - expected[i]) * (gradient[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(distance / size);
}

double largest(std::span<const double> values) {
  double most = 0.0;
  for (double value : values) most = std::max(most, std::fabs(value));
  return most;
}

// The largest error of a parameter's gradient, in f64.
double worst_gradient(const OrtIssue& issue) {
  CompileOptions options = options_of(issue, GraphMode::kGradients);
  options.import.float_type = DType::kF64;
  const auto compiled = compile(model_of(issue), options);
  Executor executor(compiled->program);
  executor.load_initial();
  const Batch batch = batch_of(*compiled, issue);
  CHECK(std::isfinite(loss_now(executor, batch)));
  const Graph& graph = compiled->program.graph;
  std::map<std::string, Tensor> gradients;
  for (const GradientOf& pair : graph.gradients) {
    gradients.emplace(graph.value(pair.of).name, executor.read(graph.value(pair.gradient).name));
  }
  REQUIRE(!gradients.empty());
  CHECK(gradients.size() == graph.values_of(ValueKind::kParameter).size());
  double worst = 0.0;
  for (const auto& [parameter, gradient] : gradients) {
    CAPTURE(parameter);
    const std::vector<double> expected = differences_of(executor, batch, parameter);
    CHECK(largest(expected) > 1e-6);  // a gradient that is not there would be equal to nothing
    const double error = relative_distance(gradient.values<double>(), expected);
    CHECK(error < kGradientLimit);
    worst = std::max(worst, error);
  }
  return worst;
}

struct LossRange {
  double first = 0.0;
  double last = 0.0;
};

LossRange train_issue(const OrtIssue& issue) {
  Session session(model_of(issue), options_of(issue, GraphMode::kTrain));
  SameOrtBatch batches(batch_of(session.compiled(), issue));
  Trainer trainer(session.shared_executor(), 1);
  LossRange losses;
  for (int step = 1; step <= kTrainingSteps; ++step) {
    losses.last = trainer.run_step(step, 1e-2, batches).loss;
    if (step == 1) losses.first = losses.last;
  }
  return losses;
}

void check_issues(std::span<const OrtIssue> issues) {
  REQUIRE(!issues.empty());
  for (const OrtIssue& issue : issues) {
    CAPTURE(issue.issue);
    try {
      const double error = worst_gradient(issue);
      const LossRange losses = train_issue(issue);
      CHECK(losses.last < 0.9 * losses.first);
      if (issue.loss_there > 0.0) {
        CHECK(std::fabs(losses.first / issue.loss_there - 1.0) < kLossLimit);
      }
      MESSAGE(fmt::format("{} {}: gradients within {:.1e}, loss {:.4f} -> {:.4f}", issue.issue,
                          issue.about, error, losses.first, losses.last));
    } catch (const Error& error) {
      FAIL_CHECK(error.message() << " | " << fmt::format("{}", fmt::join(error.context(), " | ")));
    }
  }
}

}  // namespace

TEST_CASE("ort issues: ops without a gradient there have one, and train") {
  check_issues(issues_of_ops());
}

TEST_CASE("ort issues: models that fail there compile, have exact gradients, and train") {
  check_issues(issues_of_models());
}

}  // namespace trainscope::test
