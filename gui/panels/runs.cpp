// The Runs panel: the open runs, and two of them beside each other by ONNX node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "gui/panels/empty_state.h"
#include "gui/panels/runs_state.h"
#include "gui/panels/view/view_parts.h"

namespace trainscope::gui {

RunData* other_run(Workbench& workbench) {
  if (workbench.count() < 2) return nullptr;
  std::optional<std::size_t>& other = workbench.state<RunsState>().other;
  const bool is_chosen = other && *other < workbench.count() && *other != workbench.active();
  if (!is_chosen) other = workbench.active() == 0 ? 1 : 0;
  return &workbench.source(*other);
}

namespace {

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
  const std::string of_session = run.session_flag();
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
      return number("arena", {static_cast<double>(run.plan()->arena().bytes), Unit::kBytes},
                    of_session.empty() ? "plan" : "inspect --memory" + of_session, "/arena_bytes");
    case 5: {
      const double ms = mean_step_ms(run);
      if (!(ms == ms)) return;
      return number("step", {ms, Unit::kMilliseconds}, "query" + of_session, "/step_ms");
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
  const bool yields = other_run(workbench) != nullptr && has_focus(ui, kDifferenceTable);
  const TableResponse response = table(ui, "runs", rect,
                                       {.columns = kRunColumns,
                                        .rows = workbench.count(),
                                        .chosen = workbench.active(),
                                        .yields = yields},
                                       state.runs_table, [&](Ui& inner, const TableCell& cell) {
                                         draw_run_cell(inner, workbench, state, cell);
                                       });
  if (!response.clicked) return;
  if (ui.input().shift && *response.clicked != workbench.active()) {
    state.other = *response.clicked;
  } else {
    if (state.other == *response.clicked) state.other = workbench.active();
    workbench.activate(*response.clicked);
  }
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

std::string runs_twin(Workbench& workbench) {
  const RunData* b = other_run(workbench);
  std::string line = twin_of_run(workbench, "compare");
  if (b != nullptr) line += " " + b->words();
  return line;
}

// The run that A is held against is the next of the others.
void compare_next(Workbench& workbench) {
  if (other_run(workbench) == nullptr) return;
  std::size_t& other = *workbench.state<RunsState>().other;
  do {
    other = (other + 1) % workbench.count();
  } while (other == workbench.active());
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
              "takes in time and bytes in a step of A and of B, and by which kernels, run how "
              "often. A is the active run. Differences in colour are more than steps differ "
              "anyway. A click on one selects its node.",
          .keys =
              "Click: the active run\nShift-click: the run to compare with\n"
              "Tab, then arrows: the table of differences",
          .draw = draw_runs,
          .table = difference_table,
          .twin = runs_twin,
          .commands = kRunsCommands,
          .view = runs_view()};
}

}  // namespace trainscope::gui
