// A plan as it is drawn: made with the plan, by the thread that plans.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/core/json.h"
#include "gui/budget/budget_view.h"
#include "gui/budget/step_planner.h"
#include "gui/views/memory_map.h"

namespace trainscope::gui {

// An outcome, which request it answers, and what is drawn of its plan.
struct PlanAnswer {
  std::uint64_t id = 0;
  PlanOutcome outcome = {};
  double milliseconds = 0.0;  // from the request to its answer
  // Empty and null where no plan fits.
  MemoryMap map = {};
  std::vector<std::string_view> pinnable = {};  // of each rectangle of the map; empty: none
  Json facts = {};                              // what `plan --json` prints of it

  PlanView plan() const { return view_of(outcome.record); }
};

// Map, values that may be pinned and facts of the plan, if there is one.
void draw_up(PlanAnswer& answer, const PinnableValues& pinnable);

}  // namespace trainscope::gui
