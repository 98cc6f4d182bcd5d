// What the Timeline panel remembers, and its parts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/panels/query/chosen_row.h"
#include "gui/ui/table.h"
#include "gui/ui/ui.h"
#include "gui/views/range_statistics.h"
#include "gui/views/timeline_frame.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// What the time of a range can be added up by.
inline constexpr std::array kTimelineGroups = {
    profiler::GroupBy::kKernel, profiler::GroupBy::kOp,    profiler::GroupBy::kNode,
    profiler::GroupBy::kLayer,  profiler::GroupBy::kPhase, profiler::GroupBy::kPass};

struct TimelineState {
  const RunData* of = nullptr;
  std::int64_t session = 0;
  std::uint64_t version = 0;
  TimelineData data = {};
  std::vector<std::string> threads = {};  // names by their numbers, as far as they have one
  TimeRange view = {};
  TimelineFrame frame = {};
  float dragged = 0.0F;
  std::int64_t range_from = 0;  // where a range begins that is being drawn
  bool draws_range = false;
  float scroll = 0.0F;

  profiler::GroupBy by = profiler::GroupBy::kOp;
  profiler::RangeTimes sums = {};
  std::vector<std::uint32_t> sum_rows = {};  // positions in its rows, as the table has them
  TimeRange summed = {};                     // of `sums`
  profiler::GroupBy summed_by = profiler::GroupBy::kOp;
  TableState table = {.sorted_by = 1};
  ChosenRow chosen = {};  // of the sums

  std::vector<Flow> flows = {};
  std::uint32_t flows_of = kNoRow;  // the call
  std::uint32_t flows_through = 0;  // the value's serial
  std::int64_t flows_in = -1;       // the step; -1: they are not known yet
};

// The step of median length, with a margin: calls can be told apart in one step, not in thirty.
// Everything where there are no steps.
TimeRange first_view(const TimelineData& data);
// Brings the state to the active run and its selection. The run has events.
void update_timeline(TimelineState& state, Workbench& workbench);
// The range that is selected, or else that of all whole steps.
TimeRange summed_range(const TimelineState& state, const Workbench& workbench);
std::int64_t shown_step(const TimelineState& state, const Workbench& workbench);
// The command line that prints the profile of the session that is shown.
std::string query_of_profile(Workbench& workbench);
// Another step over the width, as the range.
void go_to_step(TimelineState& state, Workbench& workbench, int by);

std::span<const AppCommand> timeline_commands();

void draw_timeline_rows(Ui& ui, Workbench& workbench, TimelineState& state, const Rect& rect);
// Where counters are drawn: their names, their curves, and from which y on.
struct CounterArea {
  Rect labels = {};
  Rect area = {};  // as wide as the view of the state
  float top = 0.0F;
  float row_height = 0.0F;
  std::string query = {};  // the command line that prints their ranges
};
// What was measured once a step, below each other; without what was 0 throughout.
float counters_height(const TimelineState& state, float row_height);
void draw_counters(Ui& ui, const TimelineState& state, const CounterArea& place);
// Where the time of the range went.
void draw_range_sums(Ui& ui, Workbench& workbench, TimelineState& state, const Rect& rect);

}  // namespace trainscope::gui
