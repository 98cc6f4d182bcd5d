// Menus from the command table; what is selected, and what happened.
#include "gui/app/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/app/layouts.h"
#include "gui/app/workspaces.h"
#include "gui/panels/empty_state.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr std::array<std::string_view, 5> kMenus = {"File", "View", "Go", "Run", "Help"};
constexpr double kNoticeSeconds = 6.0;

constexpr std::string_view kMenuOfLayouts = "View";
constexpr std::size_t kMostLayouts = 9;  // in the menu: their box and the palette have them all

struct MenuRow {
  std::string command;
  MenuItem item;
};

std::vector<MenuRow> rows_of(std::string_view menu, const Workbench& workbench) {
  std::vector<MenuRow> rows;
  for (const AppCommand& command : all_commands()) {
    if (command.menu != menu) continue;
    rows.push_back({std::string(command.id),
                    {.label = std::string(command.title),
                     .key = std::string(command.key),
                     .enabled = is_enabled(command, workbench),
                     .checked = command.checked != nullptr && command.checked(workbench)}});
  }
  if (menu != kMenuOfLayouts) return rows;
  const std::vector<LayoutCommand> layouts = commands_that_show(workbench);
  for (std::size_t i = 0; i < std::min(layouts.size(), kMostLayouts); ++i) {
    rows.push_back(
        {layouts[i].command,
         {.label = layouts[i].title, .checked = layouts[i].is_shown, .line_above = i == 0}});
  }
  return rows;
}

void draw_one_menu(Ui& ui, Workbench& workbench, Rect& rest, std::string_view name) {
  const std::vector<MenuRow> rows = rows_of(name, workbench);
  if (rows.empty()) return;
  std::vector<MenuItem> items;
  for (const MenuRow& row : rows) items.push_back(row.item);
  const Rect place = take_left(rest, button_width(ui, name));
  const int chosen = menu_button(ui, name, place, name, items, {.flat = true});
  if (chosen >= 0) workbench.request(rows[static_cast<std::size_t>(chosen)].command);
}

void draw_workspaces(Ui& ui, Workbench& workbench, const Rect& rect) {
  std::vector<std::string_view> titles;
  std::size_t chosen = 0;
  const Workspace& now = workspace_of(workbench.settings.layout);
  for (const Workspace& workspace : all_workspaces()) {
    if (workspace.id == now.id) chosen = titles.size();
    titles.push_back(workspace.title);
  }
  if (tabs(ui, "workspaces", rect, titles, chosen)) {
    workbench.settings.layout.workspace = all_workspaces()[chosen].id;
  }
}

float workspaces_width(const Ui& ui) {
  float width = 0.0F;
  for (const Workspace& workspace : all_workspaces()) width += button_width(ui, workspace.title);
  return width;
}

std::string title_of(const Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr) return "no run is open";
  std::string title = run->name();
  if (const RunSession* session = run->session_record(); session != nullptr) {
    title += fmt::format("  {}", trainscope::name_of(session->status));
  }
  if (!run->shows_newest()) {
    title += fmt::format("  session {} of {}", run->session(), run->session_count());
  }
  return title;
}

// Which of several runs is shown, and its state.
void draw_run(Ui& ui, Workbench& workbench, const Rect& rect) {
  const std::string title = title_of(workbench);
  if (workbench.count() < 2) {
    ui.text(rect, title,
            {.color = ui.theme().soft_ink, .align = Align::kRight, .fit = Fit::kMiddle});
    return;
  }
  std::vector<MenuItem> items;
  for (std::size_t i = 0; i < workbench.count(); ++i) {
    items.push_back({.label = workbench.source(i).name(), .checked = i == workbench.active()});
  }
  const int chosen = menu_button(ui, "run", rect, title + " ▼", items,
                                 {.flat = true,
                                  .tooltip = "The run that is shown",
                                  .fit = Fit::kMiddle,
                                  .align = Align::kRight});
  if (chosen >= 0) workbench.activate(static_cast<std::size_t>(chosen));
}

// From the right: the loss, then the step that it is of.
void draw_last_step(Ui& ui, Workbench& workbench, Rect rest) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->metrics().steps.empty()) return;
  const StepRecord& last = run->metrics().steps.back();
  const auto draw = [&](std::string_view name, const Quantity& quantity, std::string_view help) {
    const float width = ui.width(text_of(quantity).whole(), Face::kNumber);
    const Rect number = take_right(rest, std::ceil(width));
    take_right(rest, 6.0F);
    const Rect label = take_right(rest, std::ceil(ui.width(name)));
    take_right(rest, 14.0F);
    if (rest.empty()) return;  // no part of it without the other
    ui.tooltip(ui.hit(fmt::format("{}/about", name),
                      {label.x, label.y, number.right() - label.x, label.height},
                      {.kind = ItemKind::kArea, .focusable = false}),
               help);
    ui.number(name, number, quantity,
              fmt::format("{} | /last_step/{}", twin_of_run(workbench, "inspect"), name),
              {.face = Face::kNumber, .color = ui.theme().soft_ink});
    ui.text(label, name, {.color = ui.theme().soft_ink});
  };
  draw("loss", {last.loss, Unit::kPlain}, "Training loss of the last step; it has no unit");
  draw("step", {static_cast<double>(last.step), Unit::kCount},
       "The last optimizer step that the run has recorded, from 1");
}

}  // namespace

void draw_menu_bar(Ui& ui, Workbench& workbench, const Rect& rect) {
  const Region region(ui, "menu", rect);
  const Scope scope(ui, "menu");
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect;
  for (const std::string_view menu : kMenus) draw_one_menu(ui, workbench, rest, menu);
  const std::string_view find = "Find  Ctrl+P";
  if (rest.width > 300.0F && button(ui, "find", take_right(rest, button_width(ui, find)), find,
                                    {.tooltip = "Commands, nodes, tensors and kernels"})) {
    workbench.overlay = Overlay::kPalette;
  }
  take_right(rest, 12.0F);
  const float wide = workspaces_width(ui);
  if (rest.width > wide + 140.0F) {
    take_left(rest, 16.0F);
    draw_workspaces(ui, workbench, take_left(rest, wide));
  }
  take_left(rest, 12.0F);
  if (rest.width > 60.0F) draw_run(ui, workbench, rest);
}

void draw_status_bar(Ui& ui, Workbench& workbench, const Rect& rect) {
  const Scope scope(ui, "status");
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect.inset(8.0F, 0.0F);
  Notice& notice = workbench.notice;
  if (!notice.text.empty() && notice.until == 0.0) {
    notice.until = ui.input().seconds + kNoticeSeconds;
  }
  if (notice.until < ui.input().seconds) notice = {};
  const std::string selected = workbench.selected_name();
  const Rect left = take_left(rest, rest.width * 0.55F);
  if (selected.empty()) {
    ui.text(left, "nothing selected", {.color = ui.theme().soft_ink});
  } else {
    ui.text(left, selected, {.fit = Fit::kMiddle});
  }
  take_left(rest, 12.0F);
  if (!notice.text.empty()) {
    ui.text(rest, notice.text,
            {.color = notice.is_error ? ui.theme().error : ui.theme().accent,
             .align = Align::kRight,
             .fit = Fit::kEnd});
    return;
  }
  draw_last_step(ui, workbench, rest);
}

}  // namespace trainscope::gui
