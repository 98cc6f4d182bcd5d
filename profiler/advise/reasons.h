// Why a step needs the memory and the time that it does, in sentences for people: three each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "engine/bundle/plan_record.h"
#include "engine/machine/machine.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::profiler {

// Names from files are printable in all of them.
//
// When the most bytes are alive, what kinds of bytes they are, and which buffers are the largest.
std::vector<std::string> peak_sentences(const PlanView& plan, const MemoryPeak& peak);
// How long a step takes in each phase, which ops take the most, and which node takes longest, with
// the reason why it is as far from its roof as it is. Null: no machine was measured.
std::vector<std::string> time_sentences(const StepTimes& times, const PlanView& plan,
                                        const Machine* machine);

// How near a call comes to what the machine reaches, and what keeps it from there.
struct RoofReason {
  double share = 0.0;       // of its roof
  std::string bound = {};   // what the roof is of: "arithmetic in f32", "bytes of L2"
  std::string reason = {};  // a clause that follows "because"; empty: the call is at its roof
};
RoofReason roof_reason(const Machine& machine, const PlanView& plan, const PlanCall& call,
                       double seconds);

}  // namespace trainscope::profiler
