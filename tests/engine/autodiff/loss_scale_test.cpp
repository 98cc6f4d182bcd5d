// Dynamic loss scaling in f64, where a power of two changes no digit: steps with it are those
// without, but for the ones that are left out.
#include <doctest/doctest.h>

#include <limits>

#include "tests/engine/autodiff/optimizer_run.h"

namespace trainscope::test {
namespace {

constexpr double kRate = 0.1;

OptimizerOptions optimizer(OptimizerKind kind) {
  return {.kind = kind,
          .momentum = kind == OptimizerKind::kSgd ? 0.9 : 0.0,
          .weight_decay = 0.01,
          .clip_norm = 0.5,
          .groups = {}};
}

Run plain_run(OptimizerKind kind) { return Run(step_graph(training(optimizer(kind)))); }

Run scaled_run(OptimizerKind kind, std::int64_t micro_batches = 1) {
  TrainingOptions options = training(optimizer(kind));
  options.precision = StepPrecision::kF16;
  options.micro_batches = micro_batches;
  Run run(step_graph(options));
  run.inputs.insert_or_assign(kLossScaleState, Tensor::scalar(65536.0));
  return run;
}

std::int64_t counter(const Run& run, const char* name) {
  return run.inputs.at(name).values<std::int64_t>()[0];
}

// The gradients of the next step become NaN, its loss does not.
void spoil(Run& run) {
  run.inputs.at("x").values<double>()[0] = std::numeric_limits<double>::infinity();
}

}  // namespace

TEST_CASE("loss scale: gradients are scaled, clipping and steps are not") {
  for (OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kLamb}) {
    CAPTURE(name_of(kind));
    Run plain = plain_run(kind);
    Run scaled = scaled_run(kind);
    for (int step = 0; step < 3; ++step) {
      plain.one(kRate);
      scaled.one(kRate);
      const std::vector<double> gradient = plain.gradient("w");
      const std::vector<double> larger = scaled.gradient("w");
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        CHECK(larger[i] == doctest::Approx(65536.0 * gradient[i]).epsilon(1e-12));
      }
      CHECK(numbers(scaled.results.at(kGradientNormOutput))[0] ==
            doctest::Approx(numbers(plain.results.at(kGradientNormOutput))[0]).epsilon(1e-12));
      plain.advance();
      scaled.advance();
      for (const char* name : {"w", "b"}) {
        CHECK(worst(plain.value(name), scaled.value(name)) < kLimit);
      }
    }
    CHECK(counter(scaled, kGoodStepsState) == 3);
    CHECK(counter(scaled, kTakenStepsState) == 3);
  }
}

TEST_CASE("loss scale: a step whose gradients are not finite is left out, the scale is halved") {
  for (OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kLamb}) {
    CAPTURE(name_of(kind));
    Run plain = plain_run(kind);
    Run scaled = scaled_run(kind);
    const Tensor x = scaled.inputs.at("x");
    const auto step = [](Run& run) {
      run.one(kRate);
      run.advance();
    };
    step(plain);
    step(scaled);
    spoil(scaled);
    step(scaled);
    CHECK(scaled.value(kLossScaleState)[0] == 32768.0);
    CHECK(counter(scaled, kGoodStepsState) == 0);
    CHECK(counter(scaled, kTakenStepsState) == 1);
    scaled.inputs.insert_or_assign("x", x);
    // As if the bad step had not been: the bias correction counts the steps taken.
    step(plain);
    step(scaled);
    for (const Update& update : plain.graph.updates) {
      const std::string& name = plain.graph.value(update.state).name;
      CAPTURE(name);
      CHECK(worst(plain.value(name), scaled.value(name)) < kLimit);
    }
    CHECK(counter(scaled, kTakenStepsState) == 2);
  }
}

TEST_CASE("loss scale: it doubles after 2000 good steps, within its limits") {
  Run run = scaled_run(OptimizerKind::kSgd);
  run.inputs.insert_or_assign(kGoodStepsState, Tensor::scalar<std::int64_t>(1999));
  run.one(kRate);
  run.advance();
  CHECK(run.value(kLossScaleState)[0] == 131072.0);
  CHECK(counter(run, kGoodStepsState) == 0);
  run.inputs.insert_or_assign(kLossScaleState, Tensor::scalar(0x1p24));
  run.inputs.insert_or_assign(kGoodStepsState, Tensor::scalar<std::int64_t>(1999));
  run.one(kRate);
  run.advance();
  CHECK(run.value(kLossScaleState)[0] == 0x1p24);
  run.inputs.insert_or_assign(kLossScaleState, Tensor::scalar(1.0));
  spoil(run);
  run.one(kRate);
  run.advance();
  CHECK(run.value(kLossScaleState)[0] == 1.0);
}

TEST_CASE("loss scale: an optimizer in the backward phase is refused") {
  TrainingOptions options = training({.kind = OptimizerKind::kSgd, .groups = {}});
  options.precision = StepPrecision::kF16;
  options.optimizer.in_backward = true;
  CHECK(contains(refusal_of([&] { step_graph(options); }),
                 "cannot run in the backward phase with fp16"));
}

}  // namespace trainscope::test
