// The Graph panel: a stage of the compilation as a picture, and what a stage has that another has
// not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"
#include "gui/workbench/panel.h"

namespace trainscope::gui {
namespace {

constexpr float kChangesWidth = 300.0F;
constexpr float kLeastSearch = 80.0F;  // of the field, beside what it found

// The stages that changed the graph, and where each is in the list of all.
struct StageMenu {
  std::vector<MenuItem> items = {};
  std::vector<std::size_t> stages = {};
};

StageMenu menu_of(const RunData& run, std::size_t checked) {
  StageMenu menu;
  for (std::size_t i = 0; i < run.stages().size(); ++i) {
    const StageFacts& stage = run.stages()[i];
    if (i > 0 && !stage.record.changed && i != checked) continue;
    menu.items.push_back({.label = stage.label, .checked = i == checked});
    menu.stages.push_back(i);
  }
  return menu;
}

void draw_stage_menus(Ui& ui, Workbench& workbench, const GraphState& state, Rect& bar) {
  const RunData& run = *workbench.run();
  auto& choice = stage_choice(workbench);
  const StageMenu menu = menu_of(run, state.stage);
  const std::string label = fmt::format("{} ▼", run.stages()[state.stage].label);
  const int picked = menu_button(ui, "stage", take_left(bar, button_width(ui, label)), label,
                                 menu.items, {.tooltip = "The stage that is shown ([ and ])"});
  if (picked >= 0) show_stage(workbench, menu.stages[static_cast<std::size_t>(picked)]);
  take_left(bar, 6.0F);
  StageMenu against = menu_of(
      run, choice.compare < 0 ? run.stages().size() : static_cast<std::size_t>(choice.compare));
  against.items.insert(against.items.begin(),
                       {.label = "no other stage", .checked = choice.compare < 0});
  const std::string other =
      choice.compare < 0
          ? std::string("compare ▼")
          : fmt::format("vs {} ▼", run.stages()[static_cast<std::size_t>(choice.compare)].label);
  const int chosen =
      menu_button(ui, "compare", take_left(bar, button_width(ui, other)), other, against.items,
                  {.tooltip = "The stage that it is held against (D: the one before)"});
  if (chosen == 0) choice.compare = -1;
  if (chosen > 0) {
    choice.compare =
        static_cast<std::int32_t>(against.stages[static_cast<std::size_t>(chosen) - 1]);
  }
  take_left(bar, 6.0F);
}

void draw_coloring(Ui& ui, GraphState& state, Rect& bar) {
  std::vector<MenuItem> items;
  for (std::size_t i = 0; i < kColorings; ++i) {
    const auto coloring = static_cast<ColorBy>(i);
    items.push_back(
        {.label = std::string(name_of(coloring)), .checked = coloring == state.coloring});
  }
  const std::string label = fmt::format("color: {} ▼", name_of(state.coloring));
  const int picked = menu_button(ui, "color", take_left(bar, button_width(ui, label)), label, items,
                                 {.tooltip = "What nodes are coloured by (C: the next)"});
  if (picked >= 0) state.coloring = static_cast<ColorBy>(picked);
  take_left(bar, 6.0F);
}

void collapse_or_open(GraphState& state) {
  const bool any_open = std::ranges::any_of(
      state.layout.blocks, [&](const LaidBlock& block) { return !block.collapsed; });
  state.collapsed.clear();
  if (any_open) {
    for (const LaidBlock& block : state.layout.blocks) state.collapsed.insert(block.name);
  }
  state.fits = true;
}

void draw_node_search(Ui& ui, Workbench& workbench, GraphState& state, Rect bar) {
  const std::string found = text_of_found(state);
  const float room = found.empty() ? 0.0F : std::ceil(ui.width(found)) + 1.0F;
  const Rect count = take_right(bar, bar.width > room + kLeastSearch ? room : 0.0F);
  if (!count.empty()) take_right(bar, 6.0F);
  ui.fitting_text(count, {found}, {.color = ui.theme().soft_ink});
  const FieldResponse typed = text_field(
      ui, "search", bar, state.search,
      {.hint = "find: name, op or ONNX node",
       .tooltip = "Nodes of this stage; Enter goes on to the next (/)",
       .takes_focus = ui.region_has_keys() && ui.take(Chord{.key = static_cast<Key>('/')}),
       .is_wrong = !state.search.empty() && state.found.empty() && !state.selected.kernel.empty()});
  if (typed.changed) state.found.clear();
  if (typed.submitted) find_next(state, workbench);
}

void draw_graph_tools(Ui& ui, Workbench& workbench, GraphState& state, Rect bar) {
  bar = bar.inset(6.0F, 3.0F);
  const float fit = button_width(ui, "Fit");
  if (bar.width > 420.0F &&
      button(ui, "fit", take_right(bar, fit), "Fit", {.tooltip = "The whole graph (F)"})) {
    state.fits = true;
  }
  take_right(bar, 6.0F);
  const float blocks = button_width(ui, "Blocks");
  if (bar.width > 470.0F && button(ui, "blocks", take_right(bar, blocks), "Blocks",
                                   {.tooltip = "Collapse all blocks, or open them (B)"})) {
    collapse_or_open(state);
  }
  take_right(bar, 6.0F);
  draw_stage_menus(ui, workbench, state, bar);
  if (bar.width > 220.0F) draw_coloring(ui, state, bar);
  if (bar.width > 90.0F) draw_node_search(ui, workbench, state, bar);
}

// How many nodes there are of each kind of change, as `diff` counts them.
void draw_change_counts(Ui& ui, const GraphState& state, Rect rest) {
  for (const auto& [kind, count] : state.changes.nodes) {
    if (count == 0) continue;
    const Quantity quantity{static_cast<double>(count), Unit::kCount};
    const float word = std::ceil(ui.width(kind)) + 6.0F;
    const float number = std::ceil(ui.width(text_of(quantity).whole(), Face::kNumber)) + 4.0F;
    if (rest.width < word + number) return;
    ui.text(take_left(rest, word), kind, {.color = ui.theme().soft_ink});
    ui.number(fmt::format("count/{}", kind), take_left(rest, number), quantity,
              fmt::format("/nodes/{}", kind));
    take_left(rest, 14.0F);
  }
}

void draw_graph_info(Ui& ui, Workbench& workbench, GraphState& state, const Rect& rect) {
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect.inset(8.0F, 0.0F);
  if (state.waits) {
    return ui.text(rest, "Reading the stage ...", {.color = ui.theme().soft_ink});
  }
  if (!state.gone.empty()) {
    if (state.gone_to != 0) {
      const float width = button_width(ui, "Show it");
      if (button(ui, "follow", take_right(rest, width), "Show it",
                 {.tooltip = "Selects the node that does its work now"})) {
        const std::uint32_t place = state.picture.find(state.gone_to);
        return select_place(state, workbench, place);
      }
      take_right(rest, 8.0F);
    }
    return ui.text(rest, state.gone, {.color = ui.theme().warning, .fit = Fit::kEnd});
  }
  if (state.compared >= 0) return draw_change_counts(ui, state, rest);
  draw_legend(ui, workbench, state, rest);
}

bool has_graph(const Workbench& workbench) {
  return workbench.run() != nullptr && !workbench.run()->stages().empty();
}

void go_to_stage_before(Workbench& workbench) {
  show_stage(workbench, changed_stage(*workbench.run(), shown_stage(workbench), -1));
}

void go_to_stage_after(Workbench& workbench) {
  show_stage(workbench, changed_stage(*workbench.run(), shown_stage(workbench), 1));
}

void compare_or_not(Workbench& workbench) {
  auto& choice = stage_choice(workbench);
  const std::size_t shown = shown_stage(workbench);
  const std::size_t before = changed_stage(*workbench.run(), shown, -1);
  const bool on = choice.compare < 0 && before != shown;
  choice.compare = on ? static_cast<std::int32_t>(before) : -1;
}

// The stage that it is held against: the changed one before (by < 0) or after the one of now, but
// for the one that is shown.
template <int kBy>
void move_compared(Workbench& workbench) {
  std::int32_t& compare = stage_choice(workbench).compare;
  const std::size_t shown = shown_stage(workbench);
  const std::size_t from = compare < 0 ? shown : static_cast<std::size_t>(compare);
  std::size_t to = changed_stage(*workbench.run(), from, kBy);
  if (to == shown) to = changed_stage(*workbench.run(), to, kBy);
  if (to != shown) compare = static_cast<std::int32_t>(to);
}

void compare_with_model(Workbench& workbench) { stage_choice(workbench).compare = 0; }

void color_by_next(Workbench& workbench) {
  auto& coloring = workbench.state<GraphState>().coloring;
  coloring = static_cast<ColorBy>((static_cast<std::size_t>(coloring) + 1) % kColorings);
}

void collapse_or_open_all(Workbench& workbench) {
  auto& state = workbench.state<GraphState>();
  if (update_graph(state, workbench)) collapse_or_open(state);
}

void fit_graph(Workbench& workbench) { workbench.state<GraphState>().fits = true; }

// The one after that which was gone to last, as long as its node is selected.
void go_to_near_miss(Workbench& workbench) {
  auto& state = workbench.state<GraphState>();
  if (!update_graph(state, workbench)) return;
  const std::vector<NearMissGroup>& misses = state.near_misses;
  if (misses.empty()) return workbench.tell("The pass of this stage has no near miss");
  const bool goes_on = state.near_miss < misses.size() &&
                       misses[state.near_miss].places.front() == selected_place(state, workbench);
  state.near_miss = goes_on ? (state.near_miss + 1) % misses.size() : 0;
  select_near_miss(state, workbench, state.near_miss);
}

constexpr AppCommand kGraphCommands[] = {
    {.id = "graph.stage_before",
     .title = "Graph: the stage before",
     .panel_key = "[",
     .help = "The last stage before this one that changed the graph",
     .run = go_to_stage_before,
     .enabled = has_graph},
    {.id = "graph.stage_after",
     .title = "Graph: the stage after",
     .panel_key = "]",
     .help = "The next stage that changed the graph",
     .run = go_to_stage_after,
     .enabled = has_graph},
    {.id = "graph.compare",
     .title = "Graph: against the stage before, or not",
     .panel_key = "D",
     .help = "Marks what the stage has and the one before it has not",
     .run = compare_or_not,
     .enabled = has_graph},
    {.id = "graph.compare_earlier",
     .title = "Graph: against one stage earlier",
     .panel_key = "{",
     .help = "The stage that it is held against is the changed one before",
     .run = move_compared<-1>,
     .enabled = has_graph},
    {.id = "graph.compare_later",
     .title = "Graph: against one stage later",
     .panel_key = "}",
     .help = "The stage that it is held against is the changed one after",
     .run = move_compared<1>,
     .enabled = has_graph},
    {.id = "graph.compare_model",
     .title = "Graph: against the imported model",
     .help = "Marks what became of the nodes of the ONNX model",
     .run = compare_with_model,
     .enabled = has_graph},
    {.id = "graph.color",
     .title = "Graph: the next colouring",
     .panel_key = "C",
     .help = "Nodes by op, time, bytes, share of the roof, or pass",
     .run = color_by_next,
     .enabled = has_graph},
    {.id = "graph.near_miss",
     .title = "Graph: the next near miss",
     .panel_key = "X",
     .help = "Selects what the pass of the stage nearly rewrote, one after the other",
     .run = go_to_near_miss,
     .enabled = has_graph},
    {.id = "graph.blocks",
     .title = "Graph: collapse or open all blocks",
     .panel_key = "B",
     .help = "A collapsed block is its header alone",
     .run = collapse_or_open_all,
     .enabled = has_graph},
    {.id = "graph.fit",
     .title = "Graph: all of it",
     .panel_key = "F",
     .help = "The whole graph in the view",
     .run = fit_graph,
     .enabled = has_graph},
};

void draw_graph(Ui& ui, Workbench& workbench, const Rect& rect) {
  RunData* run = workbench.run();
  const bool has_stages = run != nullptr && !run->stages().empty();
  if (!has_content(ui, workbench, rect, Topic::kStages, has_stages, "No stages")) return;
  auto& state = workbench.state<GraphState>();
  take_panel_keys(ui, workbench, kGraphCommands);
  state.waits = waits_for_stage(state, workbench);
  if (state.waits) workbench.under_way = true;
  const bool readable = state.waits || update_graph(state, workbench);
  if (!has_content(ui, workbench, rect, Topic::kStages, readable, "The stage cannot be read"))
    return;
  Rect rest = rect;
  if (rect.height > 150.0F) {
    draw_graph_tools(ui, workbench, state, take_top(rest, ui.row_height() + 8.0F));
    draw_graph_info(ui, workbench, state, take_top(rest, ui.row_height() + 2.0F));
  }
  const bool lists = state.compared >= 0 && rest.width > kChangesWidth + 360.0F;
  const Rect list = take_right(rest, lists ? kChangesWidth : 0.0F);
  state.list_has_focus = lists && has_focus(ui, kChangesTable);
  draw_graph_canvas(ui, workbench, state, rest);  // before the list: arrows are its own first
  if (lists) draw_changes(ui, workbench, state, list);
}

CopiedTable graph_table(Workbench& workbench) {
  RunData* run = workbench.run();
  auto& state = workbench.state<GraphState>();
  if (run == nullptr || run->stages().empty() || !update_graph(state, workbench)) return {};
  if (state.compared >= 0) {
    CopiedTable copied{.head = {"kind", "what", "name", "other", "stage", "reason"}};
    for (const StageChange& row : state.changes.rows) {
      copied.rows.push_back({std::string(row.kind), row.is_node ? "node" : "value", row.name,
                             row.text, row.stage, row.reason});
    }
    return copied;
  }
  CopiedTable copied{.head = {"node", "op", "phase", "source", "pass", "block"}};
  for (std::uint32_t i = 0; i < state.picture.nodes.size(); ++i) {
    const PictureNode& node = state.picture.nodes[i];
    copied.rows.push_back({std::string(node.name), std::string(node.op),
                           std::string(name_of(node.phase)), std::string(node.source),
                           std::string(node.pass),
                           state.layout.blocks[state.layout.nodes[i].block].name});
  }
  return copied;
}

std::string graph_twin(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->stages().empty()) return twin_of_run(workbench, "inspect");
  const std::size_t stage = shown_stage(workbench);
  const std::int32_t compare = stage_choice(workbench).compare;
  const std::string session = run->session_flag();
  const auto label_of = [&](std::size_t i) { return run->stages()[i].label; };
  if (compare < 0) {
    return twin_of_run(workbench, "inspect") + " --stage " + label_of(stage) + session;
  }
  const std::string path = run->path().string();
  return fmt::format("trainscope diff {} {}{}",
                     shell_word(path + ":" + label_of(static_cast<std::size_t>(compare))),
                     shell_word(path + ":" + label_of(stage)), session);
}

}  // namespace

Panel graph_panel() {
  return {.id = "graph",
          .title = "Graph",
          .about =
              "A stage of the compilation. Each band is a layer of the model: its forward "
              "nodes flow down at the left, its gradients up beside them, its updates at the "
              "right, so that what the backward pass reads of the forward pass lies next to "
              "it. Held against another stage, added nodes are marked with +, changed ones "
              "with ~, and those that do the work of nodes that are gone with <. A dashed "
              "frame is around the nodes of what the pass of the stage nearly rewrote.",
          .keys =
              "Arrows: the next node that way\nTab, then arrows: the list of changes\n"
              "Enter: to the selected node\n/: find\n+, -: nearer, further",
          .draw = draw_graph,
          .table = graph_table,
          .twin = graph_twin,
          .commands = kGraphCommands,
          .view = graph_view()};
}

}  // namespace trainscope::gui
