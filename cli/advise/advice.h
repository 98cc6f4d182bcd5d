// What `advise` finds out: a step's plan and times, and what each lever would make of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/advise/advised_step.h"
#include "cli/advise/levers.h"
#include "engine/advise/call_prices.h"
#include "engine/bundle/plan_record.h"
#include "profiler/analysis/step_times.h"

namespace trainscope {

enum class TimesFrom : std::uint8_t {
  kProfile,  // of the run
  kSteps,    // that were run for this
  kMachine,  // a model of it: nothing was run
};

// The step as it is.
struct StepFacts {
  AdvisedStep step;
  std::shared_ptr<const Compiled> compiled = {};
  PlanRecord record = {};
  profiler::StepTimes times = {};
  TimesFrom times_from = TimesFrom::kSteps;
  std::string note = {};  // why the times are not the profile's; empty: nothing to say
  std::optional<double> labels_that_count = {};  // a fraction of a batch's

  std::int64_t arena_bytes() const { return compiled->program.arena().bytes; }
  double seconds() const;  // of a step, the median
};

// A lever's steps, run in turn with those of the step as it is.
struct LeverTrial {
  std::int64_t used_bytes = 0;
  double seconds = 0.0;       // of a step, the median
  double base_seconds = 0.0;  // of the step as it is meanwhile; 0: both were too much for memory
};

struct LeverAdvice {
  Lever lever = {};
  std::string command = {};      // that trains so
  std::int64_t arena_bytes = 0;  // planned
  std::int64_t host_bytes = 0;
  std::int64_t examples = 0;  // of a step
  StepForecast forecast = {};
  double gain = 0.0;  // how much less memory times how much less time an example; 1: none
  bool fits = true;   // in the memory asked for
  std::optional<LeverTrial> trial = {};

  double seconds_an_example() const { return forecast.seconds / static_cast<double>(examples); }
};

struct Advice {
  StepFacts base;
  std::optional<std::int64_t> memory_bytes = {};  // that the step is to fit in
  std::vector<LeverAdvice> levers = {};           // the greatest gain first
  std::vector<Lever> left_out = {};               // with the reason
};

// `settled` is a call of advise with a run's options where it has none of its own.
Advice advise(const Source& source, const Invocation& settled);
// Runs the first so many levers for some steps.
void try_levers(Advice& advice, const Source& source, const Invocation& settled,
                std::int64_t count);

// Of the measured time, how much the predicted one is off: both as multiples of the step as it is,
// where that was run meanwhile.
double time_error(const Advice& advice, const LeverAdvice& lever);

}  // namespace trainscope
