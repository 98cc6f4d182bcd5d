// The chain of calls that a step cannot be shorter than, over the streams of its plan.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::profiler {

struct CriticalPath {
  std::int64_t ns = 0;                           // of the calls on it, medians of the steps
  std::vector<std::uint32_t> calls = {};         // in their order
  std::vector<std::int64_t> stream_ns = {};      // by stream: of its calls on the path
  std::vector<std::int64_t> stream_all_ns = {};  // by stream: of all its calls
};

// A call starts when the one before it on its stream is done, and those of other streams that it
// waits for. Of a tiled section the driving thread's calls stand for it.
CriticalPath critical_path(const StepTimes& times, const PlanView& plan);

}  // namespace trainscope::profiler
