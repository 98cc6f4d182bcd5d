// Breaks the time down, filters and sorts.
#include "gui/views/kernel_rows.h"

#include <algorithm>

#include "engine/core/any_error.h"

namespace trainscope::gui {

KernelRows kernel_rows(const profiler::StepTimes& times, const PlanView& plan,
                       const Machine* machine, const KernelWishes& wishes) {
  KernelRows rows;
  profiler::Filter filter;
  try {
    if (!wishes.filter.empty()) {
      filter = profiler::Filter::parse(wishes.filter, profiler::call_fields());
    }
  } catch (const std::exception& error) {
    rows.fault = error_of(error).message();
    return rows;
  }
  rows.table = profiler::breakdown(times, plan, wishes.by,
                                   {.filter = wishes.filter.empty() ? nullptr : &filter,
                                    .machine = machine,
                                    .keeps_steps = false});
  profiler::sort_rows(rows.table, wishes.sort);
  if (!wishes.descending) std::ranges::reverse(rows.table.rows);
  return rows;
}

std::unordered_map<std::string, std::uint32_t> first_calls(const PlanView& plan,
                                                           profiler::GroupBy by) {
  std::unordered_map<std::string, std::uint32_t> first;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    first.try_emplace(profiler::group_name(plan, i, by), i);
  }
  return first;
}

std::uint32_t first_call_of(const PlanView& plan, const profiler::BreakdownRow& row,
                            profiler::GroupBy by) {
  if (!row.is_call) return kNoRow;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    if (profiler::group_name(plan, i, by) == row.name) return i;
  }
  return kNoRow;
}

Selection selection_of_row(const PlanLinks& links, const Selection& from, std::uint32_t call,
                           profiler::GroupBy by) {
  const PlanView& plan = links.plan();
  const PlanCall& row = plan.calls[call];
  if (by == profiler::GroupBy::kKernel) {
    Selection selection = select_call(links, from, call);
    selection.subject = Subject::kKernel;
    selection.kernel = profiler::kernel_of(plan, row);
    return selection;
  }
  if (by == profiler::GroupBy::kCall || row.node == kNoRow) return select_call(links, from, call);
  return select_node(links, from, plan.nodes[row.node].serial);
}

std::string_view name_of(profiler::GroupBy by) {
  constexpr std::string_view kNames[] = {"call", "kernel", "op", "node", "layer", "phase", "pass"};
  return kNames[static_cast<std::size_t>(by)];
}

}  // namespace trainscope::gui
