// A program as the record of its plan: the one place that knows both.
#pragma once

#include "engine/bundle/plan_record.h"
#include "engine/compile.h"

namespace trainscope {

// Rows are one to one: a buffer, call, value or node has the position that it has as its id. Bodies
// of calls are left out: their memory is the call's workspace.
PlanRecord plan_record(const Program& program);
// ... with what recomputation was predicted to do.
PlanRecord plan_record(const Compiled& compiled);
PlanRecompute recompute_record(const RecomputeSummary& summary);

}  // namespace trainscope
