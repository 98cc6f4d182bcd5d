// Prices of calls: a step is predicted from calls like its own, and from calls by themselves.
#include "engine/advise/call_prices.h"

#include <doctest/doctest.h>

#include <memory>
#include <numeric>

#include "engine/advise/step_sample.h"
#include "engine/record_plan.h"
#include "profiler/analysis/roof.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

TimedSteps steps_of(const ReferenceModel& reference, const CompileOptions& options) {
  return TimedSteps(
      reference.model, options, [&](const Compiled&) { return reference.batches[0]; }, 1e-4);
}

TEST_CASE("step sample: calls and the rest are the step, in each step") {
  const ReferenceModel reference("mlp");
  TimedSteps steps = steps_of(reference, reference.options(GraphMode::kTrain));
  const profiler::StepTimes times =
      sample_steps(steps, {.warm_up = 1, .steps = 3, .seconds = 0.0, .most_steps = 3});
  REQUIRE(times.steps.size() == 3);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    std::int64_t of_step = std::accumulate(times.steps[i].other_ns.begin(),
                                           times.steps[i].other_ns.end(), std::int64_t{0});
    for (const profiler::CallTime& call : times.calls) of_step += call.ns[i];
    CHECK(of_step == times.steps[i].ns());
    all += of_step;
  }
  CHECK(all == times.total_ns);
  CHECK(times.calls.size() == steps.compiled().program.calls.size());
  for (const profiler::CallTime& call : times.calls) CHECK(call.runs == 3);
}

TEST_CASE("roof: of a step the optimizer's states and the loss's gradient are in place") {
  const ReferenceModel reference("gpt2");
  const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain));
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  int found = 0;
  for (const PlanCall& call : plan.calls) {
    const std::string_view op = plan.op_of(call);
    if (op != "AdamWStep" && op != "CrossEntropyGrad") continue;
    ++found;
    CAPTURE(op);
    // All that it writes; of what it reads the rest are the gradients, or the labels and their
    // sums.
    CHECK(profiler::bytes_in_place(plan, call) == call.bytes_written);
    CHECK(call.bytes_read > call.bytes_written);
  }
  CHECK(found >= 2);
}

// Steps whose calls take 1, 2, 3, ... microseconds, and 5 besides.
profiler::StepTimes made_up(std::size_t calls) {
  profiler::StepTimes times;
  std::int64_t end = 5'000;
  for (std::size_t i = 0; i < calls; ++i) {
    const auto ns = static_cast<std::int64_t>(i + 1) * 1000;
    times.calls.push_back({.ns = {ns}, .busy_ns = ns, .runs = 1});
    end += ns;
  }
  times.steps = {{.step = 1, .begin_ns = 0, .end_ns = end}};
  times.total_ns = end;
  return times;
}

TEST_CASE("call prices: a step is predicted as it was measured, micro-batches once each") {
  const ReferenceModel reference("gpt2");
  const CompileOptions options = reference.options(GraphMode::kTrain);
  const std::shared_ptr<const Compiled> base = compile(reference.model, options);
  const PlanRecord record = plan_record(*base);
  const profiler::StepTimes times = made_up(base->program.calls.size());
  CallPrices prices(base, view_of(record), times, 1);
  const StepForecast same = prices.forecast(*base, options, 1);
  CHECK(same.seconds == doctest::Approx(1e-9 * static_cast<double>(times.total_ns)));
  CHECK(same.alone_seconds == 0.0);
  CHECK(same.modelled_seconds == 0.0);
  const StepForecast twice = prices.forecast(*base, options, 2);
  double update = 0.0;
  for (std::size_t i = 0; i < times.calls.size(); ++i) {
    if (base->program.calls[i].phase == Phase::kUpdate) {
      update += 1e-9 * static_cast<double>(times.calls[i].ns[0]);
    }
  }
  CHECK(update > 0.0);
  CHECK(twice.known_seconds == doctest::Approx(2.0 * same.known_seconds - update));
}

TEST_CASE("call prices: calls that the steps lack are measured by themselves") {
  const ReferenceModel reference("mlp");
  CompileOptions options = reference.options(GraphMode::kTrain);
  const std::shared_ptr<const Compiled> base = compile(reference.model, options);
  const PlanRecord record = plan_record(*base);
  CallPrices prices(base, view_of(record), made_up(base->program.calls.size()), 1);
  options.training.precision = StepPrecision::kBF16;
  const std::unique_ptr<Compiled> lower = compile(reference.model, options);
  const StepForecast forecast = prices.forecast(*lower, options, 1);
  CHECK(forecast.alone_seconds > 0.0);
  CHECK(forecast.known_seconds > 0.0);  // the update is in f32 as before
  CHECK(forecast.seconds > forecast.alone_seconds);
}

TEST_CASE("call timing: every kernel of a step runs on numbers of its own") {
  for (const char* name : {"gpt2", "resnet18"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const std::unique_ptr<Compiled> compiled =
        compile(reference.model, reference.options(GraphMode::kTrain));
    for (const Call& call : compiled->program.calls) {
      if (call.kernel == nullptr) continue;
      CAPTURE(compiled->program.graph.node(call.node).name);
      CHECK(supports_call(compiled->program, call, *call.kernel));
      const CallTiming timing =
          time_alone(compiled->program, call, *call.kernel, {.rounds = 3, .seconds = 0.0});
      CHECK(timing.rounds == 3);
      CHECK(timing.least_seconds > 0.0);
      CHECK(timing.median_seconds >= timing.least_seconds);
    }
  }
}

}  // namespace
}  // namespace trainscope::test
