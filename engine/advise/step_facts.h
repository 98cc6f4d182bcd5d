// The step as it is: its plan, and what its calls take.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/advise/advice_request.h"
#include "engine/advise/call_prices.h"
#include "engine/bundle/plan_record.h"
#include "engine/run/timed_steps.h"
#include "profiler/analysis/step_times.h"

namespace trainscope {

enum class TimesFrom : std::uint8_t {
  kProfile,  // of the run
  kSteps,    // that were run for this
  kMachine,  // a model of it: nothing was run
};

struct StepFacts {
  std::shared_ptr<const Compiled> compiled = {};
  PlanRecord record = {};
  profiler::StepTimes times = {};
  TimesFrom times_from = TimesFrom::kSteps;
  std::string note = {};  // why the times are not the profile's; empty: nothing to say
  std::int64_t batch = 0;
  std::int64_t micro_batches = 1;
  std::optional<double> labels_that_count = {};  // a fraction of a batch's

  std::int64_t arena_bytes() const { return compiled->program.arena().bytes; }
  std::int64_t examples() const { return batch * micro_batches; }
  double seconds() const;  // of a step, the median
};

// Times are those of the run's profile where it has one of this very plan, else of steps that are
// run now, else, for models without elements and steps that memory does not hold, modelled. Throws
// what compile() and the data throw.
StepFacts step_facts(const AdviceRequest& request);

// The step compiled, with the first batch of its data.
TimedSteps timed_steps(const TrainRequest& step);

// Whether the machine has so much memory to give now.
bool fits_in_memory(std::int64_t bytes);

// Times of all nodes by the costs and the machine that the options name.
StepForecast modelled_step(const Program& program, const CompileOptions& options,
                           std::int64_t micro_batches);

}  // namespace trainscope
