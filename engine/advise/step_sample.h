// What the calls of a step take while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/core/progress.h"
#include "engine/exec/execution_events.h"
#include "engine/run/timed_steps.h"
#include "profiler/analysis/step_times.h"

namespace trainscope {

// Times of the calls of the driving thread, step by step; those of other threads' batch tiles and
// of bodies are in the time of their section and of their call.
class StepSampler final : public ExecutionEvents {
 public:
  explicit StepSampler(const Program& program);

  void call_begin(const CallEvent& event) override;
  void call_end(const CallEvent& event) override;

  void begin_step();
  void end_step();
  profiler::StepTimes take() { return std::move(times_); }

 private:
  using Clock = std::chrono::steady_clock;
  static bool is_seen(const CallEvent& event) {
    return event.thread == 0 && event.within == kNoCall;
  }
  std::int64_t now_ns() const;

  Clock::time_point begin_;
  std::vector<std::int64_t> call_ns_;  // of the step under way, by CallId
  std::vector<std::int64_t> call_runs_;
  std::int64_t step_begin_ns_ = 0;
  std::int64_t call_begin_ns_ = 0;
  profiler::StepTimes times_;
};

struct SampleEffort {
  int warm_up = 2;
  int steps = 5;         // at least
  double seconds = 1.0;  // at least, but for most_steps
  int most_steps = 40;
};
// Runs steps until they are enough. Throws Stopped, between two of them, when asked to stop.
profiler::StepTimes sample_steps(TimedSteps& steps, const SampleEffort& effort = {},
                                 const Watch& watch = {});

}  // namespace trainscope
