// What a call would take at the roofs of a machine (Williams, Waterman, Patterson 2009).
#pragma once

#include "engine/bundle/plan_record.h"
#include "engine/machine/machine.h"

namespace trainscope::profiler {

// The longer of its FLOPs at the rate of its dtype and its bytes at those of the first level that
// its operands fit in, by as many cores as the plan has threads: of a batch tile its share of it.
double roof_ns(const Machine& machine, const PlanView& plan, const PlanCall& call);

// That level: caches named L1 and L2 are each core's own, others are there once.
const MemoryLevel& level_of(const Machine& machine, const PlanView& plan, const PlanCall& call);

}  // namespace trainscope::profiler
