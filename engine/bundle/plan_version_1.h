// Version 1 of a plan's record: sizes of both memory spaces in one row, operands without types,
// calls without what their kernels do, no bodies.
#pragma once

#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/bundle/plan_sections.h"

namespace trainscope {

// The tables whose rows are others now.
struct TablesOfVersion1 {
  PlanFacts facts;
  std::vector<PlanSpace> spaces;
  std::vector<PlanValue> values;
  std::vector<PlanCall> calls;
  std::vector<PlanOperand> operands;
};

// Throws kBadInput. Types of operands that are whole values are those of the values.
TablesOfVersion1 tables_of_version_1(const SectionTable& sections);

}  // namespace trainscope
