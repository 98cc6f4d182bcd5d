// The Stages panel: what each pass made of the graph, in nodes, time and memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/workbench/panel.h"

namespace trainscope::gui {
namespace {

constexpr double kPlaySeconds = 0.9;  // of each stage
constexpr float kLeastStageList = 120.0F;
constexpr float kStageTitle = 190.0F;
constexpr float kLeastCounters = 100.0F;  // beside it
constexpr float kLeastCounterName = 40.0F;

constexpr std::array<TableColumn, 6> kStageColumns = {{
    {.name = "name",
     .title = "stage",
     .align = Align::kLeft,
     .help = "The graph after this pass",
     .sorts = false},
    {.name = "nodes_after",
     .title = "nodes",
     .width = 58.0F,
     .help = "Nodes after the pass",
     .sorts = false},
    {.name = "delta",
     .title = "+/-",
     .width = 50.0F,
     .help = "Nodes that it has more than the stage before",
     .sorts = false},
    {.name = "seconds_after",
     .title = "time",
     .width = 82.0F,
     .help = "Of a step, as the model of the machine has it: the longer of arithmetic and traffic "
             "of each node",
     .sorts = false},
    {.name = "live_bytes_after",
     .title = "alive",
     .width = 82.0F,
     .help = "The most bytes of values that are alive at once, in the order of the nodes, before "
             "they are placed",
     .sorts = false},
    {.name = "milliseconds",
     .title = "pass",
     .width = 82.0F,
     .help = "What the pass itself took while compiling",
     .sorts = false},
}};

struct StagesState {
  std::vector<std::size_t> rows = {};  // stages that are listed
  TableState table = {.sorted_by = 0, .descending = false};
  TableState miss_table = {.sorted_by = 0, .descending = false};
  std::int32_t scrolled = -2;  // the stage that the table was scrolled to
};

void list_stages(StagesState& state, const RunData& run, const StageChoice& choice,
                 std::size_t shown) {
  state.rows.clear();
  for (std::size_t i = 0; i < run.stages().size(); ++i) {
    const bool listed = !choice.changed_only || i == 0 || run.stages()[i].record.changed ||
                        i == shown || static_cast<std::int32_t>(i) == choice.compare;
    if (listed) state.rows.push_back(i);
  }
}

// What the pass counted, as far as there is room: "4 constants merged".
void draw_counters(Ui& ui, const StageRecord& record, std::size_t at, Rect rest) {
  const Color color = ui.theme().soft_ink;
  for (const auto& [name, count] : record.counters) {
    const Quantity quantity{static_cast<double>(count), Unit::kCount};
    const float digits = std::ceil(ui.width(text_of(quantity).whole())) + 1.0F;
    const std::string what = printable(name);
    if (rest.width < digits + kLeastCounterName) return;
    ui.number(fmt::format("counters/{}", name), take_left(rest, digits), quantity,
              fmt::format("/stages/{}/counters/{}", at, name),
              {.face = Face::kText, .color = color});
    take_left(rest, 4.0F);
    ui.text(take_left(rest, std::min(rest.width, std::ceil(ui.width(what)) + 1.0F)), what,
            {.color = color, .fit = Fit::kEnd});
    take_left(rest, 12.0F);
  }
}

void draw_stage_name(Ui& ui, const StageFacts& stage, std::size_t at, bool compared,
                     const Rect& rect) {
  Rect rest = rect;
  if (compared) {
    ui.text(take_right(rest, 24.0F), "vs",
            {.face = Face::kSmall, .color = ui.theme().accent, .align = Align::kRight});
  }
  const std::string number = stage.label.substr(0, stage.label.find('-'));
  ui.text(take_left(rest, std::ceil(ui.width("00", Face::kSmallNumber)) + 6.0F), number,
          {.face = Face::kSmallNumber, .color = ui.theme().soft_ink});
  const std::string title = title_of_stage(stage);
  const Rect name = take_left(
      rest, std::min(rest.width, std::max(kStageTitle, std::ceil(ui.width(title)) + 16.0F)));
  ui.text(
      name, title,
      {.color = stage.record.changed ? ui.theme().ink : ui.theme().soft_ink, .fit = Fit::kMiddle});
  if (rest.width < kLeastCounters) return;
  draw_counters(ui, stage.record, at, rest);
}

void draw_stage_cell(Ui& ui, const RunData& run, std::size_t stage, std::int32_t compare,
                     const TableCell& cell) {
  const StageRecord& record = run.stages()[stage].record;
  const auto fact = [&](std::string_view key) { return fmt::format("/stages/{}/{}", stage, key); };
  const auto nodes = [](std::int64_t count) {
    return Quantity{static_cast<double>(count), Unit::kCount};
  };
  switch (cell.column) {
    case 0:
      return draw_stage_name(ui, run.stages()[stage], stage,
                             static_cast<std::int32_t>(stage) == compare, cell.rect);
    case 1:
      return ui.number("nodes_after", cell.rect, nodes(record.nodes_after), fact("nodes_after"));
    case 2: {
      const std::int64_t delta = record.nodes_after - record.nodes_before;
      if (delta == 0) return;
      return ui.number(
          "delta", cell.rect, {static_cast<double>(delta), Unit::kChange},
          fact("nodes_after") + " - " + fact("nodes_before"),
          {.face = Face::kNumber, .color = delta > 0 ? ui.theme().warning : ui.theme().good});
    }
    case 3:
      return ui.number("seconds_after", cell.rect, {record.seconds_after, Unit::kSeconds},
                       fact("seconds_after"));
    case 4:
      if (record.live_bytes_after < 0) return;
      return ui.number("live_bytes_after", cell.rect,
                       {static_cast<double>(record.live_bytes_after), Unit::kBytes},
                       fact("live_bytes_after"));
    default:
      return ui.number("milliseconds", cell.rect, {record.milliseconds, Unit::kMilliseconds},
                       fact("milliseconds"));
  }
}

void play_stages(Ui& ui, Workbench& workbench, StageChoice& choice) {
  if (!choice.plays) return;
  workbench.moves = true;
  const double now = ui.input().seconds;
  if (choice.played < 0.0) choice.played = now;  // it begins
  // One that the Graph still reads is seen as long as the others.
  if (std::exchange(workbench.state<GraphState>().waits, false)) choice.played = now;
  if (now - choice.played < kPlaySeconds) return;
  choice.played = now;
  const std::size_t shown = shown_stage(workbench);
  const std::size_t next = changed_stage(*workbench.run(), shown, 1);
  if (next == shown) {
    choice.plays = false;
  } else {
    show_stage(workbench, next);
  }
}

void start_or_stop(Workbench& workbench, StageChoice& choice) {
  choice.plays = !choice.plays;
  choice.played = -1.0;
  const std::size_t shown = shown_stage(workbench);
  const bool at_end = changed_stage(*workbench.run(), shown, 1) == shown;
  if (choice.plays && at_end) show_stage(workbench, 0);
}

void draw_stage_tools(Ui& ui, Workbench& workbench, StageChoice& choice, Rect bar) {
  bar = bar.inset(6.0F, 3.0F);
  const std::string_view label = choice.plays ? "Stop" : "Play";
  const float width = std::max(button_width(ui, "Stop"), button_width(ui, "Play"));
  if (button(ui, "play", take_left(bar, width), label,
             {.tooltip = "Shows one stage after the other (Space)"})) {
    start_or_stop(workbench, choice);
  }
  take_left(bar, 8.0F);
  const float changed = std::ceil(ui.width("changed")) + 30.0F;
  if (bar.width >= changed) {
    toggle(ui, "changed_only", take_left(bar, changed), "changed", choice.changed_only,
           "Only the passes that changed the graph");
  }
  take_left(bar, 8.0F);
  const float misses = std::ceil(ui.width("near misses")) + 30.0F;
  if (bar.width >= misses) {
    toggle(ui, "near_misses", take_left(bar, misses), "near misses", choice.near_misses,
           "What passes nearly rewrote, and why they did not");
  }
}

void draw_stage_list(Ui& ui, Workbench& workbench, StagesState& state, StageChoice& choice,
                     const Rect& rect) {
  const RunData& run = *workbench.run();
  const std::size_t shown = shown_stage(workbench);
  list_stages(state, run, choice, shown);
  const auto at = std::ranges::find(state.rows, shown);
  const auto chosen = static_cast<std::size_t>(at - state.rows.begin());
  const bool moved = state.scrolled != static_cast<std::int32_t>(shown);
  state.scrolled = static_cast<std::int32_t>(shown);
  const TableResponse response =
      table(ui, "table", rect,
            {.columns = kStageColumns,
             .rows = state.rows.size(),
             .chosen = chosen,
             .scrolls_to_chosen = moved},
            state.table, [&](Ui& inner, const TableCell& cell) {
              draw_stage_cell(inner, run, state.rows[cell.row], choice.compare, cell);
            });
  if (response.clicked) {
    const std::size_t stage = state.rows[*response.clicked];
    if (ui.input().shift) {
      const auto other = static_cast<std::int32_t>(stage);
      choice.compare = choice.compare == other || stage == shown ? -1 : other;
    } else {
      show_stage(workbench, stage);
    }
  }
  if (response.activated) workbench.request("panel graph");
}

// The numbers alone, where there is no room for names; the shown one is always seen.
void draw_numbers(Ui& ui, Workbench& workbench, StagesState& state, const StageChoice& choice,
                  const Rect& rect) {
  const RunData& run = *workbench.run();
  const std::size_t shown = shown_stage(workbench);
  list_stages(state, run, choice, shown);
  const float height = ui.row_height();
  const auto at = std::ranges::find(state.rows, shown) - state.rows.begin();
  const auto first = std::max(0.0F, height * (static_cast<float>(at) + 1.0F) - rect.height);
  const Clip clip(ui, rect, Moves::kUpAndDown);
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    const std::size_t stage = state.rows[i];
    const Rect row{rect.x, rect.y - first + height * static_cast<float>(i), rect.width, height};
    if (!ui.canvas().visible(row)) continue;
    const bool chosen = stage == shown;
    const StageFacts& facts = run.stages()[stage];
    const Response response =
        ui.hit(fmt::format("number/{}", stage), row,
               {.kind = ItemKind::kRow, .label = facts.label, .focusable = false});
    const Color paper = chosen             ? ui.theme().selected
                        : response.hovered ? ui.theme().hovered
                                           : ui.theme().panel;
    const Surface surface(ui, row, paper);
    ui.text(row, facts.label.substr(0, facts.label.find('-')),
            {.face = Face::kSmallNumber,
             .color = chosen ? ui.theme().ink : ui.theme().soft_ink,
             .align = Align::kCenter});
    ui.tooltip(response, fmt::format("{}: {} nodes", facts.label, facts.record.nodes_after));
    if (response.clicked) show_stage(workbench, stage);
  }
}

bool has_stages(const Workbench& workbench) {
  return workbench.run() != nullptr && !workbench.run()->stages().empty();
}

template <int kBy>
void go_to_stage(Workbench& workbench) {
  show_stage(workbench, changed_stage(*workbench.run(), shown_stage(workbench), kBy));
}

void play_or_stop(Workbench& workbench) {
  start_or_stop(workbench, workbench.state<StageChoice>());
}

constexpr AppCommand kStagesCommands[] = {
    {.id = "stages.before",
     .title = "Stages: the one before",
     .panel_key = "[",
     .help = "The last stage before this one that changed the graph",
     .run = go_to_stage<-1>,
     .enabled = has_stages},
    {.id = "stages.after",
     .title = "Stages: the one after",
     .panel_key = "]",
     .help = "The next stage that changed the graph",
     .run = go_to_stage<1>,
     .enabled = has_stages},
    {.id = "stages.play",
     .title = "Stages: play, or stop",
     .panel_key = "Space",
     .help = "Shows one stage after the other",
     .run = play_or_stop,
     .enabled = has_stages},
    {.id = "stages.changed",
     .title = "Stages: those that changed the graph, or all",
     .panel_key = "C",
     .help = "Which passes are listed",
     .run = [](Workbench& w) { w.state<StageChoice>().changed_only ^= true; },
     .enabled = has_stages},
    {.id = "stages.near_misses",
     .title = "Stages: near misses, or stages",
     .panel_key = "X",
     .help = "What passes nearly rewrote, and why they did not, in place of the stages",
     .run = [](Workbench& w) { w.state<StageChoice>().near_misses ^= true; },
     .enabled = has_stages},
};

void draw_stages(Ui& ui, Workbench& workbench, const Rect& rect) {
  if (!has_content(ui, workbench, rect, Topic::kStages, has_stages(workbench), "No stages")) return;
  auto& state = workbench.state<StagesState>();
  auto& choice = workbench.state<StageChoice>();
  Rect rest = rect;
  const bool narrow = rect.width < kLeastStageList;
  if (rect.height > 110.0F && !narrow) {
    draw_stage_tools(ui, workbench, choice, take_top(rest, ui.row_height() + 8.0F));
  }
  take_panel_keys(ui, workbench, kStagesCommands);
  play_stages(ui, workbench, choice);
  if (narrow) return draw_numbers(ui, workbench, state, choice, rest);
  if (choice.near_misses) {
    draw_missed_rewrites(ui, workbench, state.miss_table, rest);
  } else {
    draw_stage_list(ui, workbench, state, choice, rest);
  }
}

CopiedTable stages_table(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr) return {};
  CopiedTable copied{.head = {"stage", "nodes_before", "nodes_after", "seconds_after",
                              "live_bytes_after", "milliseconds", "changed"}};
  for (const StageFacts& stage : run->stages()) {
    const StageRecord& record = stage.record;
    copied.rows.push_back(
        {stage.label, std::to_string(record.nodes_before), std::to_string(record.nodes_after),
         fmt::format("{:.9g}", record.seconds_after), std::to_string(record.live_bytes_after),
         fmt::format("{:.9g}", record.milliseconds), record.changed ? "yes" : "no"});
  }
  return copied;
}

std::string stages_twin(Workbench& workbench) {
  std::string line = twin_of_run(workbench, "inspect") + " --stages";
  if (workbench.state<StageChoice>().near_misses) line += " --explain";
  const RunData* run = workbench.run();
  if (run != nullptr) line += run->session_flag();
  return line;
}

}  // namespace

Panel stages_panel() {
  return {.id = "stages",
          .title = "Stages",
          .about =
              "The compilation, pass by pass: how many nodes the graph has after each, and "
              "what a step of it would take in time and memory. Click a stage to see its "
              "graph, Shift-click another to hold it against that one. Near misses are what a "
              "pass would have rewritten but for one reason.",
          .keys = "Shift-click: the stage to compare with\nEnter: its graph",
          .draw = draw_stages,
          .table = stages_table,
          .twin = stages_twin,
          .commands = kStagesCommands,
          .view = stages_view()};
}

}  // namespace trainscope::gui
