// The tables of `plan`: what recomputation could do for a step.
#pragma once

#include <span>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "engine/compile.h"

namespace trainscope {

std::span<const Flag> plan_table_flags();  // --front, --compare, ...
bool asks_for_table(const Settings& settings);

// Adds the tables asked for to an outcome: facts and text. `options` are those of the step; of its
// recomputation the pins and the link count.
void add_plan_tables(const OnnxModel& model, CompileOptions options, const Settings& settings,
                     Outcome& outcome);

}  // namespace trainscope
