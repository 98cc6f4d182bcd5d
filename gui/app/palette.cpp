// Ctrl+P: commands, nodes, tensors, kernels and stages by what is typed.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "gui/app/commands.h"
#include "gui/app/layouts.h"
#include "gui/app/overlays.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"
#include "gui/views/palette_index.h"

namespace trainscope::gui {
namespace {

constexpr std::size_t kMostFound = 200;

struct PaletteState {
  std::string query = {};
  std::size_t chosen = 0;
  bool is_open = false;
  bool is_whole = false;  // it knows the nodes that the plan does not have, too
  PaletteIndex index = PaletteIndex();
  std::vector<Found> found = {};
};

std::vector<FindEntry> entries_of_commands(const Workbench& workbench) {
  std::vector<FindEntry> entries;
  for (const AppCommand& command : all_commands()) {
    if (!is_enabled(command, workbench)) continue;
    entries.push_back({.kind = FindKind::kCommand,
                       .name = std::string(command.title),
                       .detail = std::string(command.key.empty() ? command.panel_key : command.key),
                       .target = std::string(command.id)});
  }
  for (const auto commands_of : {commands_that_show, commands_that_delete}) {
    for (const LayoutCommand& command : commands_of(workbench)) {
      entries.push_back(
          {.kind = FindKind::kCommand, .name = command.title, .target = command.command});
    }
  }
  return entries;
}

// What is chosen stays so, where it is found again.
void fill_index(PaletteState& state, Workbench& workbench) {
  const std::string chosen = state.chosen < state.found.size()
                                 ? state.index.entries()[state.found[state.chosen].entry].target
                                 : std::string();
  state.index = PaletteIndex(entries_of_commands(workbench));
  state.is_whole = !workbench.is_reading_ahead();
  if (const PlanLinks* links = workbench.links()) state.index.add_plan(*links);
  if (RunData* run = workbench.run()) {
    if (state.is_whole) {
      state.index.add_gone(gone_nodes(*run));
      state.index.add_past(past_nodes(*run), run->stages());
    }
    for (const StageFacts& stage : run->stages()) {
      state.index.add({.kind = FindKind::kStage,
                       .name = stage.label,
                       .detail = fmt::format("{} nodes", stage.record.nodes_after),
                       .target = "stage:" + stage.label});
    }
  }
  state.found = state.index.find(state.query, kMostFound);
  const auto same = std::ranges::find_if(state.found, [&](const Found& found) {
    return state.index.entries()[found.entry].target == chosen;
  });
  state.chosen = same == state.found.end()
                     ? 0
                     : static_cast<std::size_t>(std::distance(state.found.begin(), same));
}

void run_entry(Workbench& workbench, PaletteState& state, const FindEntry& entry) {
  workbench.overlay = Overlay::kNone;
  state.is_open = false;
  if (entry.kind == FindKind::kCommand) {
    workbench.request(entry.target);
  } else {
    workbench.select_named(entry.target);
  }
}

// True when it was pressed.
bool draw_found(Ui& ui, const Rect& row, const FindEntry& entry, bool is_chosen) {
  const Theme& theme = ui.theme();
  const Response pressed = ui.hit("", row,
                                  {.kind = ItemKind::kRow,
                                   .label = entry.name,
                                   .value = is_chosen ? "chosen" : "",
                                   .focusable = false,
                                   .ink = theme.ink});
  const Surface surface(ui, row,
                        is_chosen         ? theme.selected
                        : pressed.hovered ? theme.hovered
                                          : ui.paper(),
                        3.0F);
  Rect rest = row.inset(8.0F, 0.0F);
  ui.text(take_left(rest, 72.0F), name_of(entry.kind),
          {.face = Face::kSmall, .color = theme.soft_ink});
  const float detail = std::min(rest.width * 0.4F, ui.width(entry.detail, Face::kSmall) + 12.0F);
  ui.text(
      take_right(rest, detail), entry.detail,
      {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight, .fit = Fit::kMiddle});
  ui.text(rest, entry.name, {.fit = Fit::kMiddle});
  return pressed.clicked;
}

void draw_list(Ui& ui, Workbench& workbench, PaletteState& state, const Rect& rect) {
  const float height = ui.row_height() + 2.0F;
  const auto count = state.found.size();
  if (ui.take("Down") && state.chosen + 1 < count) ++state.chosen;
  if (ui.take("Up") && state.chosen > 0) --state.chosen;
  const float top = height * static_cast<float>(state.chosen);
  scroll_to(ui, "list", top, top + height, rect.height);
  const Scrolled view = scrolled(ui, "list", rect, height * static_cast<float>(count));
  const Clip clip(ui, view.view, Moves::kUpAndDown);
  for (std::size_t i = 0; i < count; ++i) {
    const Rect row{view.view.x, view.view.y + height * static_cast<float>(i) - view.offset,
                   view.view.width, height};
    if (row.bottom() < view.view.y || row.y > view.view.bottom()) continue;
    const Scope scope(ui, std::to_string(i));
    const FindEntry entry = state.index.entries()[state.found[i].entry];
    if (draw_found(ui, row, entry, i == state.chosen)) run_entry(workbench, state, entry);
  }
}

}  // namespace

void draw_palette(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<PaletteState>();
  if (!state.is_open) state = {.is_open = true};
  if (!state.is_whole && (state.index.entries().empty() || !workbench.is_reading_ahead())) {
    fill_index(state, workbench);
  }
  const Modal modal(ui, workbench, window, "palette", {640.0F, 440.0F});
  Rect rest = modal.body();
  const FieldResponse typed =
      text_field(ui, "query", take_top(rest, ui.row_height() + 8.0F), state.query,
                 {.hint = "name, Transpose->Reshape, [*,768], bf16", .takes_focus = true});
  if (typed.changed) {
    state.chosen = 0;
    state.found = state.index.find(state.query, kMostFound);
  }
  take_top(rest, 6.0F);
  if (state.found.empty()) {
    ui.text(take_top(rest, ui.row_height()), "Nothing is found.", {.color = ui.theme().soft_ink});
  }
  draw_list(ui, workbench, state, rest);
  if (typed.submitted && state.chosen < state.found.size()) {
    run_entry(workbench, state, FindEntry(state.index.entries()[state.found[state.chosen].entry]));
  }
  if (typed.left) workbench.overlay = Overlay::kNone;
  if (workbench.overlay != Overlay::kPalette) {
    state = {};  // of a large run it is large
    ui.memory().focus.clear();
    ui.memory().cursor.path.clear();
  }
}

}  // namespace trainscope::gui
