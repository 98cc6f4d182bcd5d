// The recorded steps of one run, replayed in turn until one is not what its inputs make.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/bisect/step_replay.h"
#include "engine/bisect/step_start.h"
#include "engine/train/schedule.h"

namespace trainscope {

struct RunReplay {
  // In order; of the first step that has any. One of what a step begins with is of the step before.
  std::vector<LocalFault> faults = {};
  std::vector<std::int64_t> steps = {};    // that were replayed
  std::vector<std::int64_t> skipped = {};  // of which nobody knows what they began with
  std::int64_t judged = 0;                 // tensors
};

struct ReplayedRun {
  const DefinedStep& step;
  const profiler::IndexedTrace& trace;
  StepReplay::LimitOf limit_of;
  Schedule schedule;                // of the learning rate
  StartOf start;                    // of what the trace has no elements of itself
  std::vector<std::int64_t> steps;  // ascending
  double rounding = 0.0;            // see StepReplay
};

// Parameters and states of a step come from the trace, where it has all elements of the step
// before; else from what the replay of that step made; else from `start`; of step 1 from the model.
RunReplay replay_run(const ReplayedRun& run);

}  // namespace trainscope
