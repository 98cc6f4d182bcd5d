// The Runs panel: the open runs, and two of them beside each other by ONNX node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/ui/controls.h"
#include "gui/ui/table.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"
#include "profiler/analysis/run_difference.h"

namespace trainscope::gui {
namespace {

using profiler::DifferenceRow;

struct RunsState {
  std::optional<std::size_t> other = {};  // the run that the active one is held against
  TableState runs_table = {.sorted_by = 0, .descending = false};
  TableState table = {.sorted_by = 3};
  profiler::RunDifference difference = {};
  std::vector<std::uint32_t> rows = {};  // positions in the difference's, as they are sorted
  const RunData* a = nullptr;            // of `difference`
  const RunData* b = nullptr;
  std::uint64_t version_a = 0;
  std::uint64_t version_b = 0;
};

constexpr std::array<TableColumn, 7> kRunColumns = {{
    {.name = "name",
     .title = "run",
     .align = Align::kLeft,
     .help = "Its folder or model file",
     .sorts = false},
    {.name = "status",
     .title = "status",
     .width = 84.0F,
     .align = Align::kLeft,
     .help = "Of the newest session: one that was killed says running",
     .sorts = false},
    {.name = "steps",
     .title = "steps",
     .width = 60.0F,
     .help = "Optimizer steps so far",
     .sorts = false},
    {.name = "loss", .title = "loss", .width = 96.0F, .help = "Of the last step", .sorts = false},
    {.name = "arena",
     .title = "arena",
     .width = 86.0F,
     .help = "Bytes that a step needs",
     .sorts = false},
    {.name = "step",
     .title = "step",
     .width = 86.0F,
     .help = "The mean of the profiled steps",
     .sorts = false},
    {.name = "compare",
     .title = "",
     .width = 30.0F,
     .align = Align::kLeft,
     .help = "A is the active run, B the one that it is held against",
     .sorts = false},
}};

constexpr std::array<TableColumn, 7> kDifferenceColumns = {{
    {.name = "name",
     .title = "ONNX node",
     .align = Align::kLeft,
     .help = "Parentheses: time that is no call's"},
    {.name = "a_ms", .title = "A ms", .width = 76.0F, .help = "Median of a step in A"},
    {.name = "b_ms", .title = "B ms", .width = 76.0F, .help = "Median of a step in B"},
    {.name = "difference",
     .title = "B - A ms",
     .width = 88.0F,
     .help = "In colour where it is more than steps differ anyway"},
    {.name = "a_bytes", .title = "A bytes", .width = 84.0F, .help = "Of its results in A"},
    {.name = "b_bytes", .title = "B bytes", .width = 84.0F, .help = "Of its results in B"},
    {.name = "kernels",
     .title = "kernels",
     .width = 280.0F,
     .align = Align::kLeft,
     .help = "That run it: of A, and of B where they are others",
     .sorts = false},
}};

std::string_view status_of(const RunData& run) {
  if (run.manifest() == nullptr) return "model";
  return name_of(run.manifest()->sessions.back().status);
}

double mean_step_ms(RunData& run) {
  const profiler::StepTimes* times = run.times();
  if (times == nullptr || times->steps.empty()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(times->total_ns) / 1e6 / static_cast<double>(times->steps.size());
}

void draw_run_cell(Ui& ui, Workbench& workbench, const RunsState& state, const TableCell& cell) {
  RunData& run = workbench.source(cell.row);
  const auto& steps = run.metrics().steps;
  const auto number = [&](std::string_view name, const Quantity& quantity, std::string_view verb,
                          std::string_view pointer) {
    ui.number(name, cell.rect, quantity, fmt::format("{} {} | {}", verb, run.words(), pointer));
  };
  switch (cell.column) {
    case 0:
      return ui.text(cell.rect, run.name(), {.fit = Fit::kMiddle});
    case 1:
      return ui.text(cell.rect, status_of(run), {.color = ui.theme().soft_ink, .fit = Fit::kEnd});
    case 2:
      if (steps.empty()) return;
      return number("steps", {static_cast<double>(steps.back().step), Unit::kCount}, "inspect",
                    "/last_step/step");
    case 3:
      if (steps.empty()) return;
      return number("loss", {steps.back().loss, Unit::kPlain}, "inspect", "/last_step/loss");
    case 4:
      if (!run.has_memory_plan()) return;
      return number("arena", {static_cast<double>(run.plan()->arena().bytes), Unit::kBytes}, "plan",
                    "/arena_bytes");
    case 5: {
      const double ms = mean_step_ms(run);
      if (!(ms == ms)) return;
      return number("step", {ms, Unit::kMilliseconds}, "query", "/step_ms");
    }
    default:
      if (cell.row == workbench.active()) {
        ui.text(cell.rect, "A", {.face = Face::kBold, .color = ui.theme().accent});
      } else if (state.other == cell.row) {
        ui.text(cell.rect, "B", {.face = Face::kBold, .color = ui.theme().accent});
      }
  }
}

void draw_open_runs(Ui& ui, Workbench& workbench, RunsState& state, const Rect& rect) {
  const TableResponse response = table(
      ui, "runs", rect,
      {.columns = kRunColumns, .rows = workbench.count(), .chosen = workbench.active()},
      state.runs_table,
      [&](Ui& inner, const TableCell& cell) { draw_run_cell(inner, workbench, state, cell); });
  if (!response.clicked) return;
  if (ui.input().shift && *response.clicked != workbench.active()) {
    state.other = *response.clicked;
  } else {
    if (state.other == *response.clicked) state.other = workbench.active();
    workbench.activate(*response.clicked);
  }
}

// The run that A is held against: the one chosen, or else the first other one.
RunData* other_run(Workbench& workbench, RunsState& state) {
  const bool chosen =
      state.other && *state.other < workbench.count() && *state.other != workbench.active();
  if (!chosen) {
    if (workbench.count() < 2) return nullptr;
    state.other = workbench.active() == 0 ? 1 : 0;
  }
  return &workbench.source(*state.other);
}

void sort_differences(RunsState& state) {
  const std::vector<DifferenceRow>& rows = state.difference.rows;
  state.rows.resize(rows.size());
  for (std::uint32_t i = 0; i < state.rows.size(); ++i) state.rows[i] = i;
  const TableState& by = state.table;
  const auto key = [&](const DifferenceRow& row) {
    if (by.sorted_by == 1) return row.time.a.median;
    if (by.sorted_by == 2) return row.time.b.median;
    if (by.sorted_by == 4) return static_cast<double>(row.a.bytes);
    if (by.sorted_by == 5) return static_cast<double>(row.b.bytes);
    return std::abs(row.time.difference_ns());
  };
  std::ranges::stable_sort(state.rows, [&](std::uint32_t a, std::uint32_t b) {
    const DifferenceRow& first = rows[by.descending ? b : a];
    const DifferenceRow& second = rows[by.descending ? a : b];
    if (by.sorted_by == 0) return first.time.name < second.time.name;
    return key(first) < key(second);
  });
}

void take_difference(RunsState& state, RunData& a, RunData& b) {
  const bool kept = state.a == &a && state.b == &b && state.version_a == a.version() &&
                    state.version_b == b.version();
  if (!kept) {
    state.a = &a;
    state.b = &b;
    state.version_a = a.version();
    state.version_b = b.version();
    state.difference = profiler::difference_of({.plan = *a.plan(), .times = a.times()},
                                               {.plan = *b.plan(), .times = b.times()});
  }
  sort_differences(state);
}

std::string kernels_text(const DifferenceRow& row) {
  if (row.a.kernels == row.b.kernels) return row.a.kernels;
  const auto named = [](const std::string& kernels) { return kernels.empty() ? "none" : kernels; };
  return fmt::format("{} → {}", named(row.a.kernels), named(row.b.kernels));
}

void draw_difference_cell(Ui& ui, const RunsState& state, const TableCell& cell) {
  const std::uint32_t position = state.rows[cell.row];
  const DifferenceRow& row = state.difference.rows[position];
  const auto fact = [&](std::string_view key) { return fmt::format("/rows/{}/{}", position, key); };
  const auto number = [&](std::string_view name, double value, Unit unit, std::string_view key,
                          std::optional<Color> color = {}) {
    if (value == 0.0) return;
    ui.number(name, cell.rect, {value, unit}, fact(key),
              {.face = Face::kNumber, .color = color, .hides_unit = unit == Unit::kMilliseconds});
  };
  switch (cell.column) {
    case 0:
      return ui.text(
          cell.rect, row.time.is_call ? row.time.name : "(" + row.time.name + ")",
          {.color = row.time.is_call ? ui.theme().ink : ui.theme().soft_ink, .fit = Fit::kMiddle});
    case 1:
      return number("a_ms", row.time.a.median / 1e6, Unit::kMilliseconds, "a/median_ms");
    case 2:
      return number("b_ms", row.time.b.median / 1e6, Unit::kMilliseconds, "b/median_ms");
    case 3: {
      const bool significant = std::abs(row.time.significance()) > profiler::kSignificant;
      const bool slower = row.time.difference_ns() > 0.0;
      const Color color =
          !significant ? ui.theme().soft_ink : (slower ? ui.theme().error : ui.theme().good);
      return number("difference", row.time.difference_ns() / 1e6, Unit::kMilliseconds,
                    "difference_ms", color);
    }
    case 4:
      return number("a_bytes", static_cast<double>(row.a.bytes), Unit::kBytes, "plan_a/bytes");
    case 5:
      return number("b_bytes", static_cast<double>(row.b.bytes), Unit::kBytes, "plan_b/bytes");
    default:
      return ui.text(
          cell.rect, kernels_text(row),
          {.color = row.a.kernels == row.b.kernels ? ui.theme().soft_ink : ui.theme().warning,
           .fit = Fit::kEnd});
  }
}

// A word and its number, from the left; what finds no room is left out.
void draw_run_fact(Ui& ui, Rect& rest, std::string_view word, std::string_view name,
                   const Quantity& quantity, std::string_view fact) {
  if (!(quantity.value == quantity.value) || quantity.value == 0.0) return;
  const float word_width = std::ceil(ui.width(word)) + 6.0F;
  const float number_width = std::ceil(ui.width(text_of(quantity).whole(), Face::kNumber)) + 4.0F;
  if (rest.width < word_width + number_width) return;
  ui.text(take_left(rest, word_width), word, {.color = ui.theme().soft_ink});
  ui.number(name, take_left(rest, number_width), quantity, fact);
  take_left(rest, 14.0F);
}

void draw_heads(Ui& ui, const RunsState& state, const Rect& rect) {
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect.inset(8.0F, 0.0F);
  const profiler::RunDifference& both = state.difference;
  const auto ms = [](double ns) { return Quantity{ns / 1e6, Unit::kMilliseconds}; };
  const auto bytes = [](std::int64_t count) {
    return Quantity{static_cast<double>(count), Unit::kBytes};
  };
  draw_run_fact(ui, rest, "step A", "step_a", ms(both.times.step.a.median), "/step/a/median_ms");
  draw_run_fact(ui, rest, "B", "step_b", ms(both.times.step.b.median), "/step/b/median_ms");
  draw_run_fact(ui, rest, "arena A", "arena_a", bytes(both.arena_a), "/arena_a");
  draw_run_fact(ui, rest, "B", "arena_b", bytes(both.arena_b), "/arena_b");
}

void draw_difference(Ui& ui, Workbench& workbench, RunsState& state, const Rect& rect) {
  RunData* a = workbench.run();
  RunData* b = other_run(workbench, state);
  if (b == nullptr) {
    return draw_empty(
        ui, workbench, rect, "One run is open",
        {.text = "Open another one, or a folder of runs, to see what differs: Ctrl+O."});
  }
  if (a->plan() == nullptr || b->plan() == nullptr) {
    const RunData& without = a->plan() == nullptr ? *a : *b;
    return draw_empty(ui, workbench, rect, without.name() + " has no plan",
                      without.message(Topic::kPlan));
  }
  take_difference(state, *a, *b);
  Rect rest = rect;
  draw_heads(ui, state, take_top(rest, ui.row_height()));
  table(ui, "difference", rest, {.columns = kDifferenceColumns, .rows = state.rows.size()},
        state.table,
        [&](Ui& inner, const TableCell& cell) { draw_difference_cell(inner, state, cell); });
}

void draw_runs(Ui& ui, Workbench& workbench, const Rect& rect) {
  if (workbench.count() == 0) {
    return draw_empty(ui, workbench, rect, "No run is open",
                      {.text = "Open a run, a model or a folder of runs: Ctrl+O."});
  }
  auto& state = workbench.state<RunsState>();
  Rect rest = rect;
  const float wanted = ui.row_height() * static_cast<float>(workbench.count() + 1) + 10.0F;
  draw_open_runs(ui, workbench, state, take_top(rest, std::min(wanted, rect.height * 0.4F)));
  take_top(rest, 6.0F);
  if (rest.height > 60.0F) draw_difference(ui, workbench, state, rest);
}

CopiedTable runs_table(Workbench& workbench) {
  auto& state = workbench.state<RunsState>();
  RunData* a = workbench.run();
  RunData* b = workbench.count() == 0 ? nullptr : other_run(workbench, state);
  if (a == nullptr || b == nullptr || a->plan() == nullptr || b->plan() == nullptr) return {};
  take_difference(state, *a, *b);
  CopiedTable copied{.head = {"node", "a_ms", "b_ms", "difference_ms", "a_bytes", "b_bytes",
                              "a_kernels", "b_kernels"}};
  for (const std::uint32_t position : state.rows) {
    const DifferenceRow& row = state.difference.rows[position];
    copied.rows.push_back({row.time.name, fmt::format("{:.9g}", row.time.a.median / 1e6),
                           fmt::format("{:.9g}", row.time.b.median / 1e6),
                           fmt::format("{:.9g}", row.time.difference_ns() / 1e6),
                           std::to_string(row.a.bytes), std::to_string(row.b.bytes), row.a.kernels,
                           row.b.kernels});
  }
  return copied;
}

std::string runs_twin(Workbench& workbench) {
  auto& state = workbench.state<RunsState>();
  RunData* b = workbench.count() == 0 ? nullptr : other_run(workbench, state);
  std::string line = twin_of_run(workbench, "compare");
  if (b != nullptr) line += " " + b->words();
  return line;
}

// The run that A is held against is the next of the others.
void compare_next(Workbench& workbench) {
  auto& state = workbench.state<RunsState>();
  if (other_run(workbench, state) == nullptr) return;
  do {
    state.other = (*state.other + 1) % workbench.count();
  } while (*state.other == workbench.active());
}

constexpr AppCommand kRunsCommands[] = {
    {.id = "runs.compare",
     .title = "Runs: against the next one",
     .help = "Hold the active run against the next of the open runs",
     .run = compare_next,
     .enabled = [](const Workbench& w) { return w.count() > 1; }},
};

}  // namespace

Panel runs_panel() {
  return {.id = "runs",
          .title = "Runs",
          .about =
              "The runs that are open, and two of them beside each other: what each ONNX node "
              "takes in time and bytes in a step of A and of B, and by which kernels. A is "
              "the active run. Differences in colour are more than steps differ anyway.",
          .keys = "Click: the active run\nShift-click: the run to compare with",
          .draw = draw_runs,
          .table = runs_table,
          .twin = runs_twin,
          .commands = kRunsCommands};
}

}  // namespace trainscope::gui
