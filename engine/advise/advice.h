// What can be found out about a step: its plan and times, and what each lever would make of them.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "engine/advise/advice_request.h"
#include "engine/advise/call_prices.h"
#include "engine/advise/levers.h"
#include "engine/advise/step_facts.h"

namespace trainscope {

// A lever's steps, run in turn with those of the step as it is.
struct LeverTrial {
  std::int64_t used_bytes = 0;
  double seconds = 0.0;       // of a step, the median
  double base_seconds = 0.0;  // of the step as it is meanwhile; 0: both were too much for memory
};

struct LeverAdvice {
  Lever lever = {};
  std::int64_t arena_bytes = 0;  // planned
  std::int64_t host_bytes = 0;
  std::int64_t examples = 0;  // of a step
  StepForecast forecast = {};
  double gain = 0.0;  // how much less memory times how much less time an example; 1: none
  bool fits = true;   // in the memory asked for
  std::optional<LeverTrial> trial = {};
  bool too_large_to_try = false;  // for this machine's memory

  double seconds_an_example() const { return forecast.seconds / static_cast<double>(examples); }
};

struct Advice {
  StepFacts base;                                 // the step as it is
  std::optional<std::int64_t> memory_bytes = {};  // that the step is to fit in
  std::vector<LeverAdvice> levers = {};           // the greatest gain first
  std::vector<Lever> left_out = {};               // with the reason
};

// Compiles the step and that of each lever, prices their calls, and puts the levers in order: with
// memory to fit in those that do come first, the quickest of them at the top. Throws what compile()
// and the data throw for the step as it is, and Stopped when asked to stop.
Advice advise(AdviceRequest request, const std::stop_token& stop = {});
// Runs the first so many levers of the request's advice for some steps. Throws kUsage where no step
// can be run here, and Stopped.
void try_levers(Advice& advice, AdviceRequest request, std::int64_t count,
                const std::stop_token& stop = {});

// Of the measured time, how much the predicted one is off: both as multiples of the step as it is,
// where that was run meanwhile.
double time_error(const Advice& advice, const LeverAdvice& lever);

}  // namespace trainscope
