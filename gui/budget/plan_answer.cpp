// What is drawn of a plan, all of it before a frame asks.
#include "gui/budget/plan_answer.h"

#include "engine/bundle/plan_json.h"

namespace trainscope::gui {

void draw_up(PlanAnswer& answer, const PinnableValues& pinnable) {
  if (answer.outcome.record == nullptr) return;
  const PlanView plan = answer.plan();
  answer.map = memory_map(plan);
  const std::vector<std::uint32_t> originals = original_values(plan);
  answer.pinnable.reserve(answer.map.rectangles.size());
  for (const MemoryRectangle& rectangle : answer.map.rectangles) {
    answer.pinnable.push_back(pinnable.value_of(plan, originals, rectangle.buffer));
  }
  answer.facts = plan_sizes(plan);
}

}  // namespace trainscope::gui
