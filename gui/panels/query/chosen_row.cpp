// Rows are known by their names, which sorting and filters leave as they are.
#include "gui/panels/query/chosen_row.h"

namespace trainscope::gui {

void ChosenRow::follow(const PlanView& plan, std::uint32_t call, profiler::GroupBy by) {
  if (call == call_ && by == by_) return;
  call_ = call;
  by_ = by;
  is_there_ = call < plan.calls.size();
  is_call_ = true;
  name_ = is_there_ ? profiler::group_name(plan, call, by) : std::string();
}

void ChosenRow::choose(std::string_view name, bool is_call, std::uint32_t call) {
  is_there_ = true;
  name_ = name;
  is_call_ = is_call;
  call_ = call;
}

}  // namespace trainscope::gui
