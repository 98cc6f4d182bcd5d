// Points are computed once for a run, a filter and an order.
#include "gui/panels/query/roofline_state.h"

#include "gui/views/op_class.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

// Whether it is another one than before.
bool take_roofline(RooflineRun& part, RunData* run, const KernelWishes& wishes, bool is_new) {
  const bool kept = !is_new && part.of == run && (run == nullptr || part.version == run->version());
  if (kept) return false;
  part = {.of = run};
  if (run == nullptr) return true;
  part.version = run->version();
  part.rows = kernel_rows(*run->times(), *run->plan(), run->machine(), wishes);
  part.roofline = roofline_of(part.rows, wishes.by, *run->plan(), run->machine());
  return true;
}

}  // namespace

RooflineState& roofline_state_of(Workbench& workbench) {
  auto& state = workbench.state<RooflineState>();
  state.wishes.filter = workbench.state<CallQuery>().filter;
  return state;
}

void update_roofline(RooflineState& state, Workbench& workbench) {
  const bool is_new = !(state.shown == state.wishes);
  state.shown = state.wishes;
  const bool own = take_roofline(state.own, workbench.run(), state.wishes, is_new);
  const bool beside = take_roofline(state.beside, run_beside(workbench), state.wishes, is_new);
  if (own || beside) state.axes = axes_around(state.own.roofline, state.beside.roofline);
}

std::optional<std::size_t> chosen_point(const RooflineState& state, const Workbench& workbench) {
  const PlanView& plan = *workbench.run()->plan();
  const std::uint32_t call = workbench.selection().call;
  if (call >= plan.calls.size()) return std::nullopt;
  return state.own.roofline.point_named(profiler::group_name(plan, call, state.wishes.by));
}

void select_point(Workbench& workbench, const RooflineState& state, std::size_t point) {
  const PlanLinks* links = workbench.links();
  const std::uint32_t call = state.own.roofline.points[point].call;
  workbench.select(selection_of_row(*links, workbench.selection(), call, state.wishes.by));
}

Color color_of_class(const Theme& theme, OpClass op_class) {
  const std::size_t place = legend_place(op_class);
  return place < kSeriesColors ? theme.series[place] : theme.soft_ink;
}

std::span<const AppCommand> roofline_commands() {
  static constexpr AppCommand kRows[] = {
      {.id = "roofline.by",
       .title = "Roofline: the next grouping",
       .panel_key = "G",
       .help = "Points by node, op or kernel",
       .run =
           [](Workbench& w) {
             profiler::GroupBy& by = w.state<RooflineState>().wishes.by;
             const auto at = std::ranges::find(kRooflineGroups, by);
             by = at + 1 < kRooflineGroups.end() ? *(at + 1) : kRooflineGroups.front();
           },
       .enabled = [](const Workbench& w) { return w.run() != nullptr; }},
  };
  return kRows;
}

}  // namespace trainscope::gui
