// Tabs of a region, its copy menu, help and maximise buttons.
#include "gui/app/region_head.h"

#include <array>
#include <cmath>
#include <vector>

#include "gui/app/copying.h"
#include "gui/app/workspaces.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr float kIcon = 24.0F;

void copy_menu(Ui& ui, Workbench& workbench, const Panel& panel, const Rect& rect) {
  const auto can = [&](CopyChoice choice) { return can_copy(workbench, panel, choice); };
  const std::array<MenuItem, 5> items = {
      {{.label = "Copy as TSV", .enabled = can(CopyChoice::kTsv)},
       {.label = "Copy as Markdown", .enabled = can(CopyChoice::kMarkdown)},
       {.label = "Copy the command line that prints it", .enabled = can(CopyChoice::kCommand)},
       {.label = "Copy the command line of this view",
        .enabled = can(CopyChoice::kView),
        .line_above = true},
       {.label = "Copy the command line of a picture", .enabled = can(CopyChoice::kPicture)}}};
  const int chosen = menu_button(ui, "copy", rect, "Copy", items,
                                 {.flat = true, .tooltip = "Take the numbers elsewhere"});
  if (chosen >= 0) copy_from(workbench, panel, static_cast<CopyChoice>(chosen));
}

void choose_panel(Ui& ui, Layout& layout, const Panel& panel) {
  auto& chosen = ui.memory().region == "strip" ? layout.strip_panels : layout.main_panels;
  chosen[std::string(workspace_of(layout).id)] = panel.id;
}

}  // namespace

void draw_region_head(Ui& ui, Workbench& workbench, const Rect& rect,
                      std::span<const Panel* const> choices, const Panel& shown) {
  const Surface surface(ui, rect, ui.theme().header);
  const Scope scope(ui, "head");
  Rect rest = rect;
  const bool is_rail = rect.width < 100.0F;
  if (is_rail) return;
  if (button(ui, "maximize", take_right(rest, kIcon), workbench.maximized ? "◇" : "□",
             {.chosen = workbench.maximized,
              .flat = true,
              .tooltip = "Maximise this region, and back: Z"})) {
    workbench.maximized = !workbench.maximized;
  }
  if (button(ui, "help", take_right(rest, kIcon), "?",
             {.flat = true, .tooltip = "What am I looking at?"})) {
    workbench.overlay = Overlay::kHelp;
  }
  copy_menu(ui, workbench, shown, take_right(rest, button_width(ui, "Copy")));
  if (choices.size() == 1) {
    ui.fitting_text(rest.inset(10.0F, 0.0F), {shown.title}, {.face = Face::kBold});
    return;
  }
  std::vector<std::string_view> titles;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    titles.push_back(choices[i]->title);
    if (choices[i] == &shown) chosen = i;
  }
  if (tabs(ui, "tabs", rest, titles, chosen)) {
    choose_panel(ui, workbench.settings.layout, *choices[chosen]);
  }
}

}  // namespace trainscope::gui
