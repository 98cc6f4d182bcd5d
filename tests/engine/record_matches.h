// Whether a plan's record is the program's, field by field.
#pragma once

#include "engine/bundle/plan_record.h"
#include "engine/plan/program.h"

namespace trainscope::test {

// Fails where a row of the record says something else than the program, or than one of its bodies.
void check_record_of(const Program& program, const PlanView& plan);

}  // namespace trainscope::test
