// plan.json: the readable form of a plan's record, and the only one of runs of format 1.
#pragma once

#include <string>

#include "engine/bundle/plan_record.h"
#include "engine/core/json.h"

namespace trainscope {

// What recomputation saves and costs: plan.json's "recompute".
Json recompute_json(const PlanRecompute& row);
// Sizes, and what recomputation is predicted to do: what `plan` prints.
Json plan_sizes(const PlanView& plan);
// ... and a line for each call, value and buffer: the text of plan.json.
std::string plan_json(const PlanView& plan);

// A run of format 1 names its calls `instructions`. Throws kBadInput.
PlanRecord plan_of_format_1(const Json& plan);

}  // namespace trainscope
