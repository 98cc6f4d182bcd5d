// A listener between two looks at the clock.
#include "engine/advise/step_sample.h"

#include <algorithm>
#include <utility>

namespace trainscope {

StepSampler::StepSampler(const Program& program)
    : begin_(Clock::now()), call_ns_(program.calls.size()), call_runs_(program.calls.size()) {
  times_.calls.resize(program.calls.size());
}

std::int64_t StepSampler::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
}

void StepSampler::call_begin(const CallEvent& event) {
  if (is_seen(event)) call_begin_ns_ = now_ns();
}

void StepSampler::call_end(const CallEvent& event) {
  if (!is_seen(event)) return;
  const auto call = static_cast<std::size_t>(event.call);
  call_ns_[call] += now_ns() - call_begin_ns_;
  ++call_runs_[call];
}

void StepSampler::begin_step() {
  std::ranges::fill(call_ns_, 0);
  std::ranges::fill(call_runs_, 0);
  step_begin_ns_ = now_ns();
}

void StepSampler::end_step() {
  profiler::StepTime step{.step = static_cast<std::uint32_t>(times_.steps.size() + 1),
                          .begin_ns = step_begin_ns_,
                          .end_ns = now_ns()};
  std::int64_t unrecorded = step.ns();
  for (std::size_t i = 0; i < call_ns_.size(); ++i) {
    times_.calls[i].ns.push_back(call_ns_[i]);
    times_.calls[i].busy_ns += call_ns_[i];
    times_.calls[i].runs += call_runs_[i];
    unrecorded -= call_ns_[i];
  }
  step.other_ns[static_cast<std::size_t>(profiler::OtherTime::kUnrecorded)] = unrecorded;
  times_.total_ns += step.ns();
  times_.steps.push_back(step);
}

profiler::StepTimes sample_steps(TimedSteps& steps, const SampleEffort& effort,
                                 const Watch& watch) {
  for (int i = 0; i < effort.warm_up; ++i) steps.run();
  StepSampler sampler(steps.compiled().program);
  const Subscription listens = steps.executor().listen(sampler);
  double seconds = 0.0;
  for (int i = 0; i < effort.most_steps; ++i) {
    if (i >= effort.steps && seconds >= effort.seconds) break;
    watch.check();
    sampler.begin_step();
    seconds += steps.run().milliseconds / 1e3;
    sampler.end_step();
  }
  return sampler.take();
}

}  // namespace trainscope
