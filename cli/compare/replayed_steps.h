// Limits of later steps: a run's step once more, from the parameters and states that the other side
// began it with, differs from the other side's by the rounding of that step alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags/invocation.h"
#include "engine/core/json.h"
#include "profiler/numerics/tensor_comparison.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// What `compare` looks at: a run with its trace, or a trace alone.
struct TracedSide {
  std::string name;  // "A"
  std::string folder;
  profiler::Trace trace;
};

// Where the limits of a step come from.
struct StepLimits {
  std::int64_t step = 1;
  std::string replayed = {};    // the side that ran again, from what the other one had; empty: none
  std::string start_of = {};    // the other one
  std::int64_t left = 0;        // tensors that the replay does not have, judged as without one
  std::string why_not = {};     // where its limits are so many times that of one step as it is
  bool lacks_elements = false;  // that is why: they can be recorded
};

// Judges the tensors of each step after the first anew, where one side is a run whose step can be
// run again with the same bits, and the other trace has all elements that the step begins with.
// Throws SignalCame, and what is no fault of the runs.
std::vector<StepLimits> judge_by_replay(const Invocation& invocation, const TracedSide& a,
                                        const TracedSide& b, profiler::TensorComparison& both);
// The same without running anything.
std::vector<StepLimits> limits_by_count(const profiler::TensorComparison& both);

// A line for each rule, with its steps.
std::string limits_text(const std::vector<StepLimits>& limits);
Json limits_json(const std::vector<StepLimits>& limits);

}  // namespace trainscope
