// The Timeline panel: what each thread did when, and where the time of a range went.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/panels/timeline_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/views/kernel_rows.h"
#include "gui/workbench/panel.h"

namespace trainscope::gui {

TimeRange first_view(const TimelineData& data) {
  if (data.steps.empty()) return data.whole;
  std::vector<TimeRange> steps;
  for (const StepSpan& step : data.steps) steps.push_back(step.range);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle, {},
                           [](const TimeRange& range) { return range.end_ns - range.begin_ns; });
  const std::int64_t margin = (middle->end_ns - middle->begin_ns) / 50;
  return moved(data, {.begin_ns = middle->begin_ns - margin, .end_ns = middle->end_ns + margin}, 0);
}

namespace {

// Of the selected call; of a view, which has none, through its value.
void update_flows(TimelineState& state, Workbench& workbench) {
  const Selection& selection = workbench.selection();
  const std::int64_t step = shown_step(state, workbench);
  const bool is_same = state.flows_of == selection.call && state.flows_through == selection.value;
  if (is_same && state.flows_in == step) return;
  state.flows_of = selection.call;
  state.flows_through = selection.value;
  state.flows_in = step;
  state.flows.clear();
  const PlanLinks* links = workbench.links();
  if (links == nullptr) return;
  const auto number = static_cast<std::uint32_t>(step);
  state.flows =
      selection.call != kNoRow
          ? flows_of(state.data, *links, selection.call, number)
          : flows_through(state.data, *links, links->value_of_serial(selection.value), number);
}

}  // namespace

void update_timeline(TimelineState& state, Workbench& workbench) {
  RunData& run = *workbench.run();
  if (state.of != &run || state.version != run.version()) {
    // A profile that grows is looked at where it was; only before its first step was all there was.
    const bool grows =
        state.of == &run && state.session == run.session() && !state.data.steps.empty();
    state.of = &run;
    state.session = run.session();
    state.version = run.version();
    state.data = timeline_data(*run.events());
    state.threads = run.thread_names();
    state.view = grows ? moved(state.data, state.view, 0) : first_view(state.data);
    state.summed = {};
    state.flows_in = -1;
  }
  update_flows(state, workbench);
}

std::int64_t shown_step(const TimelineState& state, const Workbench& workbench) {
  const std::int64_t step = workbench.selection().step;
  if (step != 0 || state.data.steps.empty()) return step;
  const StepSpan* seen = step_at(state.data, (state.view.begin_ns + state.view.end_ns) / 2);
  return seen->step;
}

void go_to_step(TimelineState& state, Workbench& workbench, int by) {
  const std::vector<StepSpan>& steps = state.data.steps;
  if (steps.empty()) return;
  const std::int64_t shown = shown_step(state, workbench);
  const auto at = std::ranges::find(
      steps, shown, [](const StepSpan& step) { return static_cast<std::int64_t>(step.step); });
  const std::ptrdiff_t wanted = at == steps.end() ? 0 : at - steps.begin() + by;
  const auto last = static_cast<std::ptrdiff_t>(steps.size()) - 1;
  const StepSpan& step =
      steps[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(wanted, 0, last))];
  Selection selection = workbench.selection();
  selection.step = step.step;
  selection.range = step.range;
  workbench.select(selection);
  const std::int64_t margin = (step.range.end_ns - step.range.begin_ns) / 20;
  state.view =
      moved(state.data,
            {.begin_ns = step.range.begin_ns - margin, .end_ns = step.range.end_ns + margin}, 0);
}

TimeRange summed_range(const TimelineState& state, const Workbench& workbench) {
  const TimeRange selected = workbench.selection().range;
  if (!selected.empty()) return selected;
  if (state.data.steps.empty()) return state.data.whole;
  return {.begin_ns = state.data.steps.front().range.begin_ns,
          .end_ns = state.data.steps.back().range.end_ns};
}

std::string query_of_profile(Workbench& workbench) {
  const RunData* run = workbench.run();
  return twin_of_run(workbench, "query") + (run == nullptr ? std::string() : run->session_flag());
}

namespace {

constexpr float kSumsWidth = 300.0F;

// What the panel says of the profile, each as far as there is room.
struct SaidNumber {
  std::string_view name = {};
  std::string_view what = {};
  Quantity quantity = {};
  std::string fact = {};
};

void draw_seen(Ui& ui, Workbench& workbench, const TimelineState& state, Rect& bar) {
  const TimeRange seen = state.view;
  const std::string query = query_of_profile(workbench);
  const SaidNumber said[] = {
      {"seen",
       "seen",
       {static_cast<double>(seen.end_ns - seen.begin_ns), Unit::kNanoseconds},
       fmt::format("{} --range {}:{} | /range_ns", query, seen.begin_ns, seen.end_ns)},
      {"steps",
       "steps",
       {static_cast<double>(state.data.steps.size()), Unit::kCount},
       query + " | /steps"},
      {"events",
       "events",
       {static_cast<double>(state.data.index.size()), Unit::kCount},
       query + " | /events"}};
  for (const SaidNumber& each : said) {
    const float digits = std::ceil(ui.width(text_of(each.quantity).whole())) + 1.0F;
    const float word = std::ceil(ui.width(each.what)) + 1.0F;
    if (bar.width < digits + word + 4.0F) {
      bar.width = 0.0F;
      return;
    }
    const Color color = ui.theme().soft_ink;
    ui.number(each.name, take_left(bar, digits), each.quantity, each.fact,
              {.face = Face::kText, .color = color});
    take_left(bar, 4.0F);
    ui.text(take_left(bar, word), each.what, {.color = color});
    take_left(bar, 12.0F);
  }
}

void draw_timeline_tools(Ui& ui, Workbench& workbench, TimelineState& state, Rect bar) {
  bar = bar.inset(6.0F, 3.0F);
  if (button(ui, "fit", take_left(bar, button_width(ui, "Fit")), "Fit",
             {.tooltip = "The whole profile (F)"})) {
    state.view = state.data.whole;
  }
  take_left(bar, 6.0F);
  const Selection& selection = workbench.selection();
  const bool has_range = !selection.range.empty();
  if (button(ui, "to_range", take_left(bar, button_width(ui, "To range")), "To range",
             {.enabled = has_range, .tooltip = "The selected range over the whole width (V)"})) {
    workbench.request("timeline.to_range");
  }
  take_left(bar, 6.0F);
  if (button(ui, "no_range", take_left(bar, button_width(ui, "No range")), "No range",
             {.enabled = has_range, .tooltip = "Sums of all steps again (Escape)"})) {
    workbench.request("timeline.no_range");
  }
  take_left(bar, 12.0F);
  draw_seen(ui, workbench, state, bar);
  if (has_range) return;
  ui.fitting_text(bar, {"R: what is seen is the range; or Shift-drag", "R, Shift-drag: a range"},
                  {.color = ui.theme().soft_ink});
}

void draw_timeline(Ui& ui, Workbench& workbench, const Rect& rect) {
  const RunData* run = workbench.run();
  const bool has_events = run != nullptr && run->events() != nullptr && run->events()->events > 0;
  if (!has_content(ui, workbench, rect, Topic::kProfile, has_events, "No profile")) return;
  auto& state = workbench.state<TimelineState>();
  update_timeline(state, workbench);
  Rect rest = rect;
  if (rect.height > 150.0F) {
    draw_timeline_tools(ui, workbench, state, take_top(rest, ui.row_height() + 8.0F));
    const bool has_plan = run->plan() != nullptr;
    if (has_plan && rest.width > kSumsWidth + 420.0F) {
      draw_range_sums(ui, workbench, state, take_right(rest, kSumsWidth));
    } else if (has_plan && rest.height > 360.0F) {
      draw_range_sums(ui, workbench, state, take_bottom(rest, rest.height * 0.34F));
    }
  }
  take_panel_keys(ui, workbench, timeline_commands());
  draw_timeline_rows(ui, workbench, state, rest);
}

void take_sums(TimelineState& state, const Workbench& workbench) {
  const TimeRange range = summed_range(state, workbench);
  if (state.summed == range && state.summed_by == state.by && !state.sums.rows.empty()) return;
  state.summed = range;
  state.summed_by = state.by;
  state.sums = range_statistics(state.data, *workbench.run()->plan(), range, state.by);
}

constexpr std::array<TableColumn, 4> kSumColumns = {{
    {.name = "name",
     .title = "name",
     .align = Align::kLeft,
     .help = "Parentheses: time that is no call's"},
    {.name = "ns",
     .title = "time",
     .width = 86.0F,
     .help = "Of the device while it is at calls, else of the driving thread; within the range"},
    {.name = "share", .title = "share", .width = 66.0F, .help = "Of the range"},
    {.name = "spans", .title = "spans", .width = 56.0F, .help = "How many there are"},
}};

void sort_sums(TimelineState& state) {
  const TableState& table = state.table;
  state.sum_rows.resize(state.sums.rows.size());
  std::iota(state.sum_rows.begin(), state.sum_rows.end(), 0U);
  std::ranges::stable_sort(state.sum_rows, [&](std::uint32_t a, std::uint32_t b) {
    const profiler::RangeRow& first = state.sums.rows[table.descending ? b : a];
    const profiler::RangeRow& second = state.sums.rows[table.descending ? a : b];
    if (table.sorted_by == 0) return first.name < second.name;
    if (table.sorted_by == 3) return first.spans < second.spans;
    return first.ns < second.ns;
  });
}

void draw_sum_cell(Ui& ui, const TimelineState& state, const TableCell& cell) {
  const std::uint32_t position = state.sum_rows[cell.row];
  const profiler::RangeRow& row = state.sums.rows[position];
  const auto number = [&](std::string_view name, double value, Unit unit) {
    ui.number(name, cell.rect, {value, unit}, fmt::format("/rows/{}/{}", position, name));
  };
  switch (cell.column) {
    case 0:
      return ui.text(
          cell.rect, row.is_call ? row.name : "(" + row.name + ")",
          {.color = row.is_call ? ui.theme().ink : ui.theme().soft_ink, .fit = Fit::kMiddle});
    case 1:
      return number("ns", static_cast<double>(row.ns), Unit::kNanoseconds);
    case 2:
      return number("share", state.sums.share(row), Unit::kShare);
    default:
      return number("spans", static_cast<double>(row.spans), Unit::kCount);
  }
}

// The stage that a pass made, if the run has it.
void select_pass(Workbench& workbench, std::string_view pass) {
  const std::span<const StageFacts> stages = workbench.run()->stages();
  const auto found = std::ranges::find_if(
      stages, [&](const StageFacts& stage) { return stage.record.name == pass; });
  if (found == stages.end()) return;
  Selection selection = workbench.selection();
  selection.stage = static_cast<std::int32_t>(found - stages.begin());
  workbench.select(selection);
}

// A node, a kernel or a stage is selected; what is none of these is chosen alone.
void choose_sum(Workbench& workbench, TimelineState& state, const profiler::RangeRow& row) {
  using profiler::GroupBy;
  const GroupBy by = state.summed_by;
  const PlanLinks* links = workbench.links();
  if (row.is_call && by == GroupBy::kPass) select_pass(workbench, row.name);
  if (row.is_call && links != nullptr && (by == GroupBy::kNode || by == GroupBy::kKernel)) {
    const std::uint32_t call = first_calls(links->plan(), by).at(row.name);
    workbench.select(selection_of_row(*links, workbench.selection(), call, by));
  }
  state.chosen.choose(row.name, row.is_call, workbench.selection().call);
}

std::optional<std::size_t> chosen_sum(TimelineState& state, const Workbench& workbench) {
  state.chosen.follow(*workbench.run()->plan(), workbench.selection().call, state.summed_by);
  const auto found = std::ranges::find_if(state.sum_rows, [&](std::uint32_t position) {
    const profiler::RangeRow& row = state.sums.rows[position];
    return state.chosen.is(row.name, row.is_call);
  });
  if (found == state.sum_rows.end()) return std::nullopt;
  return static_cast<std::size_t>(found - state.sum_rows.begin());
}

void draw_summed_time(Ui& ui, const Workbench& workbench, const TimelineState& state, Rect head) {
  const bool has_range = !workbench.selection().range.empty();
  const std::string_view what = has_range ? "range of" : "all steps,";
  const Quantity time{static_cast<double>(state.sums.range_ns), Unit::kNanoseconds};
  const float word = std::ceil(ui.width(what)) + 5.0F;
  const float digits = std::ceil(ui.width(text_of(time).whole())) + 1.0F;
  if (head.width < word + digits) return;
  const Color color = ui.theme().soft_ink;
  ui.text(take_left(head, word), what, {.color = color});
  ui.number("summed", take_left(head, digits), time, "/range_ns",
            {.face = Face::kText, .color = color});
}

}  // namespace

void draw_range_sums(Ui& ui, Workbench& workbench, TimelineState& state, const Rect& rect) {
  const Surface surface(ui, rect, ui.theme().panel);
  take_sums(state, workbench);
  sort_sums(state);
  Rect rest = rect;
  Rect head = take_top(rest, ui.row_height() + 6.0F).inset(6.0F, 3.0F);
  std::vector<MenuItem> items;
  for (const profiler::GroupBy by : kTimelineGroups) {
    items.push_back({.label = std::string(name_of(by)), .checked = by == state.by});
  }
  const std::string label = fmt::format("by {} ▼", name_of(state.by));
  const int picked = menu_button(ui, "by", take_left(head, button_width(ui, label)), label, items);
  if (picked >= 0) state.by = kTimelineGroups[static_cast<std::size_t>(picked)];
  take_left(head, 8.0F);
  draw_summed_time(ui, workbench, state, head);
  if (state.sums.rows.empty()) {
    return draw_empty(ui, workbench, rest, "Nothing to add up",
                      {.text = "The thread that runs the steps has no calls here, nor a device."});
  }
  const TableResponse response = table(
      ui, "sums", rest,
      {.columns = kSumColumns,
       .rows = state.sums.rows.size(),
       .chosen = chosen_sum(state, workbench)},
      state.table, [&](Ui& inner, const TableCell& cell) { draw_sum_cell(inner, state, cell); });
  if (!response.clicked) return;
  choose_sum(workbench, state, state.sums.rows[state.sum_rows[*response.clicked]]);
}

namespace {

CopiedTable timeline_table(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->events() == nullptr || run->plan() == nullptr) return {};
  auto& state = workbench.state<TimelineState>();
  update_timeline(state, workbench);
  take_sums(state, workbench);
  sort_sums(state);
  CopiedTable copied{.head = {"name", "is_call", "ns", "share", "spans"}};
  for (const std::uint32_t position : state.sum_rows) {
    const profiler::RangeRow& row = state.sums.rows[position];
    copied.rows.push_back({row.name, row.is_call ? "yes" : "no", std::to_string(row.ns),
                           fmt::format("{:.9g}", state.sums.share(row)),
                           std::to_string(row.spans)});
  }
  return copied;
}

std::string timeline_twin(Workbench& workbench) {
  auto& state = workbench.state<TimelineState>();
  std::string line = query_of_profile(workbench) + fmt::format(" --by {}", name_of(state.by));
  const RunData* run = workbench.run();
  if (run == nullptr || run->events() == nullptr) return line;
  update_timeline(state, workbench);
  const TimeRange range = summed_range(state, workbench);
  return line + fmt::format(" --range {}:{}", range.begin_ns, range.end_ns);
}

}  // namespace

Panel timeline_panel() {
  return {.id = "timeline",
          .title = "Timeline",
          .about =
              "What each thread did when, in the profiled steps: steps, their parts, tiled "
              "sections, calls, and the threads' work within them; of devices each of their "
              "streams, with the kernels and copies within calls. Spans of less than two "
              "pixels are merged and counted. Below, what was measured once a step. The table "
              "has where the time of the selected range went. Curves lead from the calls whose "
              "results the selected call reads, and to those that read its own.",
          .keys =
              "+, -: nearer, further\nLeft, Right: the call before, after\nUp, Down: the sums\n"
              "Shift-drag: a range\n"
              "Double click: the span over the whole width",
          .draw = draw_timeline,
          .table = timeline_table,
          .twin = timeline_twin,
          .commands = timeline_commands(),
          .view = timeline_view()};
}

}  // namespace trainscope::gui
