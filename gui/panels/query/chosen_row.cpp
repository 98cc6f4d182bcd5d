// Rows are known by their names, which sorting and filters leave as they are.
#include "gui/panels/query/chosen_row.h"

namespace trainscope::gui {

void ChosenRow::follow(const PlanView& plan, std::uint32_t call, profiler::GroupBy by) {
  // Another run may have another name for it.
  const bool is_there = call < plan.calls.size();
  std::string name = is_there ? profiler::group_name(plan, call, by) : std::string();
  if (call == call_ && by == by_ && name == followed_) return;
  call_ = call;
  by_ = by;
  is_there_ = is_there;
  is_call_ = true;
  name_ = name;
  followed_ = std::move(name);
}

void ChosenRow::choose(std::string_view name, bool is_call, std::uint32_t call) {
  is_there_ = true;
  name_ = name;
  is_call_ = is_call;
  call_ = call;
}

}  // namespace trainscope::gui
