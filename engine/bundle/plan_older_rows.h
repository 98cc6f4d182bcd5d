// Rows of older versions of a plan's record as rows of today: up to version 3 nodes say neither the
// class of their op nor whether they are computed once more; version 1 has sizes of both memory
// spaces in one row, operands without types, calls without what their kernels do, and no bodies.
#pragma once

#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/bundle/plan_sections.h"

namespace trainscope {

// Up to version 3. Throws kBadInput.
std::vector<PlanNode> nodes_of_older_version(const SectionTable& sections);

// The other tables of version 1 whose rows are others now.
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
