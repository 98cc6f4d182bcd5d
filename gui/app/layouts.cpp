// Keeps layouts in the settings, and draws the box with their names.
#include "gui/app/layouts.h"

#include <fmt/format.h>

#include <utility>

#include "engine/core/text.h"
#include "gui/app/overlays.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"

namespace trainscope::gui {
namespace {

struct LayoutsState {
  std::string name = {};
  bool takes_focus = false;  // the field, once
};

using Saved = std::map<std::string, Layout>;

Saved::iterator named(Workbench& workbench, std::string_view name) {
  Saved& saved = workbench.settings.saved_layouts;
  const auto found = saved.find(std::string(name));
  if (found == saved.end()) {
    workbench.complain(fmt::format("there is no layout '{}'", printable(name)));
  }
  return found;
}

void draw_names(Ui& ui, Workbench& workbench, const Rect& rect) {
  const std::vector<LayoutCommand> shows = commands_that_show(workbench);
  const std::vector<LayoutCommand> deletes = commands_that_delete(workbench);
  if (shows.empty()) {
    ui.paragraph(rect,
                 "None is saved yet. A layout is the panels that are shown, and how large "
                 "the regions are.",
                 {.color = ui.theme().soft_ink});
    return;
  }
  const float height = ui.row_height() + 6.0F;
  const Scrolled view = scrolled(ui, "list", rect, height * static_cast<float>(shows.size()));
  const Clip clip(ui, view.view, Moves::kUpAndDown);
  std::size_t i = 0;
  for (const auto& [name, layout] : workbench.settings.saved_layouts) {
    const Scope scope(ui, name);
    Rect row{view.view.x, view.view.y + height * static_cast<float>(i) - view.offset,
             view.view.width, height};
    if (button(ui, "delete", take_right(row, kLeastControl + 4.0F), "✕",
               {.flat = true, .tooltip = "Delete this layout"})) {
      workbench.request(deletes[i].command);
    }
    if (button(ui, "show", row, name,
               {.chosen = shows[i].is_shown,
                .flat = true,
                .tooltip = "Bring the regions to where they were saved",
                .fit = Fit::kMiddle,
                .align = Align::kLeft})) {
      workbench.overlay = Overlay::kNone;
      workbench.request(shows[i].command);
    }
    ++i;
  }
}

}  // namespace

void open_layouts(Workbench& workbench) {
  workbench.state<LayoutsState>() = {.takes_focus = true};
  workbench.overlay = Overlay::kLayouts;
}

std::string fault_of_layout_name(std::string_view name) {
  if (is_layout_name(name)) return {};
  return fmt::format("'{}' is no name of a layout: 1 to {} bytes that can be printed",
                     printable(name), kMostNameBytes);
}

void save_layout(Workbench& workbench, std::string_view name) {
  const bool is_new = workbench.settings.saved_layouts
                          .insert_or_assign(std::string(name), workbench.settings.layout)
                          .second;
  workbench.tell(fmt::format("{} the layout '{}'", is_new ? "saved" : "replaced", name));
}

bool show_layout(Workbench& workbench, std::string_view name) {
  const auto found = named(workbench, name);
  if (found == workbench.settings.saved_layouts.end()) return false;
  workbench.settings.layout = found->second;
  return true;
}

bool delete_layout(Workbench& workbench, std::string_view name) {
  const auto found = named(workbench, name);
  if (found == workbench.settings.saved_layouts.end()) return false;
  workbench.settings.saved_layouts.erase(found);
  workbench.tell(fmt::format("deleted the layout '{}'", name));
  return true;
}

std::vector<LayoutCommand> commands_that_show(const Workbench& workbench) {
  std::vector<LayoutCommand> commands;
  for (const auto& [name, layout] : workbench.settings.saved_layouts) {
    commands.push_back({.title = "Layout: " + name,
                        .command = "layout " + name,
                        .is_shown = layout == workbench.settings.layout});
  }
  return commands;
}

std::vector<LayoutCommand> commands_that_delete(const Workbench& workbench) {
  std::vector<LayoutCommand> commands;
  for (const auto& [name, layout] : workbench.settings.saved_layouts) {
    commands.push_back({.title = "Delete the layout " + name, .command = "delete_layout " + name});
  }
  return commands;
}

void draw_layouts(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<LayoutsState>();
  const Modal modal(ui, workbench, window, "layouts", {460.0F, 340.0F});
  Rect rest = modal.body();
  Rect head = take_top(rest, ui.row_height() + 6.0F);
  if (button(ui, "close", take_right(head, button_width(ui, "Close")), "Close")) {
    workbench.overlay = Overlay::kNone;
  }
  take_right(head, 8.0F);
  if (button(ui, "reset", take_right(head, button_width(ui, "Reset")), "Reset",
             {.tooltip = "Bring the regions to where they were at first"})) {
    workbench.request("view.reset_layout");
  }
  ui.text(head, "Layouts", {.face = Face::kTitle});
  take_top(rest, 8.0F);
  Rect entry = take_top(rest, ui.row_height() + 8.0F);
  const std::string_view name = trim(state.name);
  const bool is_good = is_layout_name(name);
  const bool is_replaced = workbench.settings.saved_layouts.contains(std::string(name));
  const std::string_view save = is_replaced ? "Replace" : "Save";
  const bool pressed = button(
      ui, "save", take_right(entry, button_width(ui, "Replace")), save,
      {.enabled = is_good, .primary = true, .tooltip = "The layout of now, under this name"});
  take_right(entry, 8.0F);
  const FieldResponse typed = text_field(ui, "name", entry, state.name,
                                         {.hint = "a name for the layout of now",
                                          .takes_focus = std::exchange(state.takes_focus, false),
                                          .is_wrong = !name.empty() && !is_good});
  if (typed.left) workbench.overlay = Overlay::kNone;
  if (is_good && (pressed || typed.submitted)) {
    workbench.request("save_layout " + std::string(name));
    state.name.clear();
  }
  take_top(rest, 8.0F);
  draw_names(ui, workbench, rest);
}

}  // namespace trainscope::gui
