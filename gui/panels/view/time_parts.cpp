// Views of Timeline, Kernels and Roofline: ranges, groups, the filter, the order.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/core/text.h"
#include "gui/panels/query/kernels_state.h"
#include "gui/panels/query/roofline_state.h"
#include "gui/panels/timeline_state.h"
#include "gui/panels/view/view_parts.h"

namespace trainscope::gui {
namespace {

using profiler::GroupBy;

// Of the active run's profile; null where there is none.
TimelineState* timeline_of(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->events() == nullptr || run->events()->events == 0) return nullptr;
  auto& state = workbench.state<TimelineState>();
  update_timeline(state, workbench);
  return &state;
}

// "BEGIN:END" in nanoseconds of the profile's clock, as `query --range` has them.
std::string text_of_range(const TimeRange& range) {
  return range.empty() ? std::string() : fmt::format("{}:{}", range.begin_ns, range.end_ns);
}

std::optional<TimeRange> range_from(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> begin = parse_int(text.substr(0, colon));
  const std::optional<std::int64_t> end = parse_int(text.substr(colon + 1));
  if (!begin || !end || *end <= *begin) return std::nullopt;
  return TimeRange{.begin_ns = *begin, .end_ns = *end};
}

// "BEGIN:END" within the profile.
std::optional<TimeRange> range_within(const TimelineState* state, std::string_view text) {
  const std::optional<TimeRange> range = range_from(text);
  if (state == nullptr || !range) return std::nullopt;
  const TimeRange& whole = state->data.whole;
  const bool is_within = whole.begin_ns <= range->begin_ns && range->end_ns <= whole.end_ns;
  return is_within ? range : std::nullopt;
}

std::string range_now(Workbench& workbench) { return text_of_range(workbench.selection().range); }

bool select_range(Workbench& workbench, std::string_view text) {
  const std::optional<TimeRange> range =
      text.empty() ? TimeRange() : range_within(timeline_of(workbench), text);
  if (!range) return false;
  Selection selection = workbench.selection();
  selection.range = *range;
  workbench.select(selection);
  return true;
}

std::string seen_times_now(Workbench& workbench) {
  const TimelineState* state = timeline_of(workbench);
  if (state == nullptr || state->view == first_view(state->data)) return {};
  return text_of_range(state->view);
}

bool see_times(Workbench& workbench, std::string_view text) {
  TimelineState* state = timeline_of(workbench);
  if (state == nullptr) return text.empty();
  const std::optional<TimeRange> range =
      text.empty() ? first_view(state->data) : range_within(state, text);
  if (range) state->view = moved(state->data, *range, 0);
  return range.has_value();
}

std::string sums_by_now(Workbench& workbench) {
  const GroupBy by = workbench.state<TimelineState>().by;
  return by == GroupBy::kOp ? std::string() : std::string(name_of(by));
}

bool sum_by(Workbench& workbench, std::string_view name) {
  const std::optional<GroupBy> by = name.empty() ? GroupBy::kOp : profiler::group_named(name);
  if (!by || *by == GroupBy::kCall) return false;
  workbench.state<TimelineState>().by = *by;
  return true;
}

std::string rows_by_now(Workbench& workbench) {
  const GroupBy by = workbench.state<KernelsState>().wishes.by;
  return by == GroupBy::kNode ? std::string() : std::string(name_of(by));
}

bool rows_by(Workbench& workbench, std::string_view name) {
  const std::optional<GroupBy> by = name.empty() ? GroupBy::kNode : profiler::group_named(name);
  if (by) workbench.state<KernelsState>().wishes.by = *by;
  return by.has_value();
}

std::string points_by_now(Workbench& workbench) {
  const GroupBy by = workbench.state<RooflineState>().wishes.by;
  return by == GroupBy::kNode ? std::string() : std::string(name_of(by));
}

bool points_by(Workbench& workbench, std::string_view name) {
  const std::optional<GroupBy> by = name.empty() ? GroupBy::kNode : profiler::group_named(name);
  if (!by || std::ranges::find(kRooflineGroups, *by) == kRooflineGroups.end()) return false;
  workbench.state<RooflineState>().wishes.by = *by;
  return true;
}

std::string filter_now(Workbench& workbench) { return workbench.state<CallQuery>().filter; }

// One that is not understood is shown as such, like one that is typed.
bool filter_by(Workbench& workbench, std::string_view text) {
  workbench.state<CallQuery>().filter = text;
  return true;
}

// "COLUMN" from the largest, or from Z; "COLUMN:up" from the smallest.
std::string sort_now(Workbench& workbench) {
  const auto& state = workbench.state<KernelsState>();
  if (state.wishes.sort == "ms" && state.table.descending) return {};
  return state.wishes.sort + (state.table.descending ? "" : ":up");
}

bool sort_by(Workbench& workbench, std::string_view text) {
  auto& state = workbench.state<KernelsState>();
  const bool is_up = text.ends_with(":up");
  if (is_up) text.remove_suffix(3);
  const std::string_view name = text.empty() ? "ms" : text;
  choose_columns(state, true, false);
  const std::vector<TableColumn> columns = columns_of(state);
  if (std::ranges::find(columns, name, &TableColumn::name) == columns.end()) return false;
  state.wishes.sort = name;
  state.table.descending = !is_up;
  return true;
}

constexpr ViewPart kFilter = {.key = "filter", .now = filter_now, .show = filter_by};

}  // namespace

std::span<const ViewPart> timeline_view() {
  static constexpr ViewPart kParts[] = {{.key = "range", .now = range_now, .show = select_range},
                                        {.key = "seen", .now = seen_times_now, .show = see_times},
                                        {.key = "by", .now = sums_by_now, .show = sum_by}};
  return kParts;
}

std::span<const ViewPart> kernels_view() {
  static constexpr ViewPart kParts[] = {{.key = "by", .now = rows_by_now, .show = rows_by},
                                        kFilter,
                                        {.key = "sort", .now = sort_now, .show = sort_by}};
  return kParts;
}

std::span<const ViewPart> roofline_view() {
  static constexpr ViewPart kParts[] = {{.key = "by", .now = points_by_now, .show = points_by},
                                        kFilter};
  return kParts;
}

}  // namespace trainscope::gui
