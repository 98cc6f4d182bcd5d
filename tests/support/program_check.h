// Follows every value through a program's arena, call by call: a check of lifetimes
// and placements that shares nothing with the planner.
#pragma once

#include <string>
#include <vector>

#include "engine/passes/stage.h"
#include "engine/plan/program.h"

namespace trainscope::test {

// One line per fault: a call reads bytes that no longer hold its input, writes over an
// input without being allowed to, a workspace that touches anything, an output, gradient or state
// that is lost at the end, a buffer outside the arena. Values in another program's arena are left
// out.
std::vector<std::string> placement_faults(const Program& program);

// Puts the value elsewhere, operands too: a fault, as a rule.
void move_value(Program& program, ValueId value, PlannedValue place);

// Fails the test case for each fault, and keeps the plan, see keep_plan.
void check_placements(const Program& program, const Stages& stages = {});

}  // namespace trainscope::test
