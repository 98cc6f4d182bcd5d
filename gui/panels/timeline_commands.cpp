// Commands of the Timeline panel.
#include <algorithm>

#include "gui/panels/timeline_state.h"

namespace trainscope::gui {
namespace {

bool has_timeline(const Workbench& workbench) {
  return workbench.run() != nullptr && workbench.run()->events() != nullptr;
}

bool has_range(const Workbench& workbench) {
  return has_timeline(workbench) && !workbench.selection().range.empty();
}

TimelineState& timeline_of(Workbench& workbench) {
  auto& state = workbench.state<TimelineState>();
  update_timeline(state, workbench);
  return state;
}

void fit_timeline(Workbench& workbench) {
  TimelineState& state = timeline_of(workbench);
  state.view = state.data.whole;
}

template <int kBy>
void go_by_steps(Workbench& workbench) {
  go_to_step(timeline_of(workbench), workbench, kBy);
}

template <bool kNearer>
void zoom_timeline(Workbench& workbench) {
  TimelineState& state = timeline_of(workbench);
  state.view = zoomed(state.data, state.view, kNearer ? 0.7 : 1.4, 0.5);
}

// By a fifth of what is seen.
template <int kBy>
void move_timeline(Workbench& workbench) {
  TimelineState& state = timeline_of(workbench);
  state.view = moved(state.data, state.view, kBy * ((state.view.end_ns - state.view.begin_ns) / 5));
}

void select_times(Workbench& workbench, const TimeRange& range) {
  Selection selection = workbench.selection();
  selection.range = range;
  workbench.select(selection);
}

void select_seen(Workbench& workbench) { select_times(workbench, timeline_of(workbench).view); }
void select_no_range(Workbench& workbench) { select_times(workbench, {}); }

void see_range(Workbench& workbench) {
  TimelineState& state = timeline_of(workbench);
  state.view = moved(state.data, workbench.selection().range, 0);
}

void sum_by_next(Workbench& workbench) {
  profiler::GroupBy& by = workbench.state<TimelineState>().by;
  const auto at = std::ranges::find(kTimelineGroups, by);
  by = at + 1 < kTimelineGroups.end() ? *(at + 1) : kTimelineGroups.front();
}

}  // namespace

std::span<const AppCommand> timeline_commands() {
  static constexpr AppCommand kRows[] = {
      {.id = "timeline.fit",
       .title = "Timeline: all of it",
       .panel_key = "F",
       .help = "The whole profile over the width",
       .run = fit_timeline,
       .enabled = has_timeline},
      {.id = "timeline.next_step",
       .title = "Timeline: the next step",
       .panel_key = ".",
       .help = "The step after this one over the width, as the range",
       .run = go_by_steps<1>,
       .enabled = has_timeline},
      {.id = "timeline.step_before",
       .title = "Timeline: the step before",
       .panel_key = ",",
       .help = "The step before this one over the width, as the range",
       .run = go_by_steps<-1>,
       .enabled = has_timeline},
      {.id = "timeline.nearer",
       .title = "Timeline: nearer",
       .panel_key = "W",
       .help = "Less time over the width",
       .run = zoom_timeline<true>,
       .enabled = has_timeline},
      {.id = "timeline.further",
       .title = "Timeline: further away",
       .panel_key = "S",
       .help = "More time over the width",
       .run = zoom_timeline<false>,
       .enabled = has_timeline},
      {.id = "timeline.left",
       .title = "Timeline: to the left",
       .panel_key = "A",
       .help = "What was before, by a fifth of the width",
       .run = move_timeline<-1>,
       .enabled = has_timeline},
      {.id = "timeline.right",
       .title = "Timeline: to the right",
       .panel_key = "D",
       .help = "What comes after, by a fifth of the width",
       .run = move_timeline<1>,
       .enabled = has_timeline},
      {.id = "timeline.range",
       .title = "Timeline: what is seen as the range",
       .panel_key = "R",
       .help = "Sums are of the time over the width from now on",
       .run = select_seen,
       .enabled = has_timeline},
      {.id = "timeline.to_range",
       .title = "Timeline: to the range",
       .panel_key = "V",
       .help = "The selected range over the whole width",
       .run = see_range,
       .enabled = has_range},
      {.id = "timeline.no_range",
       .title = "Timeline: no range",
       .panel_key = "Esc",
       .help = "Sums are of all steps again",
       .run = select_no_range,
       .enabled = has_range},
      {.id = "timeline.by",
       .title = "Timeline: the next grouping of its sums",
       .panel_key = "G",
       .help = "By kernel, op, node, layer, phase or pass",
       .run = sum_by_next,
       .enabled = has_timeline},
  };
  return kRows;
}

}  // namespace trainscope::gui
