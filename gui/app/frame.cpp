// Lays the regions out, and draws each with its panel.
#include "gui/app/frame.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "gui/app/bars.h"
#include "gui/app/context_menu.h"
#include "gui/app/region_head.h"
#include "gui/app/workspaces.h"
#include "gui/panels/panels.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr auto kNarrow = static_cast<float>(kLeastWideWindow);
constexpr float kRailWidth = 36.0F;
constexpr float kNarrowStrip = 48.0F;
constexpr float kGap = 1.0F;  // between regions
constexpr float kLeastMain = 160.0F;

void draw_region(Ui& ui, Workbench& workbench, std::string_view name, const Rect& rect,
                 std::span<const Panel* const> choices, const Panel& shown, int layer) {
  if (rect.empty()) return;
  const Region region(ui, name, rect, layer);
  const Scope scope(ui, name);
  const Surface surface(ui, rect, ui.theme().panel);
  const Clip clip(ui, rect);
  Rect body = rect;
  draw_region_head(ui, workbench, take_top(body, std::max(22.0F, ui.row_height() + 2.0F)), choices,
                   shown);
  const Clip inside(ui, body);
  const Scope panel(ui, shown.id);
  shown.draw(ui, workbench, body);
  draw_context_menu(ui, workbench, shown, body);
}

// The splitters are above what they lie on: the strip's is its head, the inspector's its margin.
// The strip of a narrow window has one height.
void draw_splitters(Ui& ui, Layout& layout, const Regions& regions, bool is_narrow) {
  const Region region(ui, "splitters", {}, kOverlayLayer);
  const Scope scope(ui, "splitter");
  if (!regions.strip.empty() && !is_narrow) {
    const Rect grip{regions.strip.x + regions.strip.width / 2.0F - 24.0F, regions.strip.y, 48.0F,
                    22.0F};
    ui.cover(grip);
    layout.strip_height -= splitter(ui, "strip", grip, Axis::kVertical);
    layout.strip_height = std::clamp(layout.strip_height, kNarrowStrip, 900.0F);
  }
  if (!regions.inspector.empty()) {
    const Rect grip{regions.inspector.x, regions.inspector.y + 30.0F, kLeastControl,
                    regions.inspector.height - 30.0F};
    const Rect held{grip.x, grip.center().y - 24.0F, kLeastControl, 48.0F};
    ui.cover(held);
    layout.inspector_width -= splitter(ui, "inspector", held, Axis::kHorizontal);
    layout.inspector_width = std::clamp(layout.inspector_width, 200.0F, 900.0F);
  }
  if (layout.rail_pinned && !regions.rail.empty() && !is_narrow) {
    const Rect held{regions.rail.right() - kLeastControl, regions.rail.center().y - 24.0F,
                    kLeastControl, 48.0F};
    ui.cover(held);
    layout.rail_width += splitter(ui, "rail", held, Axis::kHorizontal);
    layout.rail_width = std::clamp(layout.rail_width, 120.0F, 600.0F);
  }
}

// From region to region, as far as that was asked for.
void cycle_regions(Ui& ui, Workbench& workbench, const Regions& regions) {
  std::vector<std::string_view> names;
  if (!regions.rail.empty()) names.push_back("stages");
  if (!regions.main.empty()) names.push_back("main");
  if (!regions.strip.empty()) names.push_back("strip");
  if (!regions.inspector.empty()) names.push_back("inspector");
  std::string& now = ui.memory().region;
  const auto at = std::find(names.begin(), names.end(), now);
  if (at == names.end()) now = "main";
  const std::ptrdiff_t steps = std::exchange(workbench.region_steps, 0);
  if (steps == 0) return;
  const auto count = std::ssize(names);
  const auto position = at == names.end() ? 0 : at - names.begin();
  now = names[static_cast<std::size_t>(((position + steps) % count + count) % count)];
  ui.memory().focus.clear();
}

Regions only_region(Regions regions, std::string_view name) {
  const Rect all{regions.rail.x, regions.menu.bottom(), regions.menu.width,
                 regions.status.y - regions.menu.bottom()};
  Regions one{.menu = regions.menu, .status = regions.status};
  if (name == "strip" && !regions.strip.empty()) {
    one.strip = all;
  } else if (name == "inspector" && !regions.inspector.empty()) {
    one.inspector = all;
  } else if (name == "stages" && !regions.rail.empty()) {
    one.rail = all;
  } else {
    one.main = all;
  }
  return one;
}

// A line around the region that has the keys.
void mark_region(Ui& ui, const Regions& regions) {
  const std::string& name = ui.memory().region;
  const Rect rect = name == "strip"       ? regions.strip
                    : name == "inspector" ? regions.inspector
                    : name == "stages"    ? regions.rail
                                          : regions.main;
  if (!rect.empty()) ui.canvas().fill({rect.x, rect.y, rect.width, 2.0F}, ui.theme().accent);
}

}  // namespace

Regions regions_of(const Layout& layout, const Rect& window, float line) {
  const bool narrow = window.width < kNarrow;
  Regions regions;
  Rect rest = window;
  regions.menu = take_top(rest, std::max(22.0F, line + 2.0F));
  regions.status = take_bottom(rest, std::max(20.0F, line));
  if (panel_named("stages") != nullptr) {
    const bool pinned = layout.rail_pinned && !narrow;
    regions.rail = take_left(rest, pinned ? layout.rail_width : kRailWidth);
    take_left(rest, kGap);
  }
  if (layout.inspector && panel_named("inspector") != nullptr) {
    const float width = std::min(layout.inspector_width, rest.width - (narrow ? 0.0F : kLeastMain));
    regions.inspector_is_over = narrow;
    if (narrow) {
      Rect over = rest;
      regions.inspector = take_right(over, width);
    } else {
      regions.inspector = take_right(rest, width);
      take_right(rest, kGap);
    }
  }
  if (strip_panel_of(layout) != nullptr) {
    const float height = narrow ? kNarrowStrip : layout.strip_height;
    regions.strip = take_bottom(rest, std::min(height, std::max(0.0F, rest.height - kLeastMain)));
    take_bottom(rest, kGap);
  }
  regions.main = rest;
  return regions;
}

void draw_window(Ui& ui, Workbench& workbench, const Rect& window) {
  const Surface surface(ui, window, ui.theme().background);
  Layout& layout = workbench.settings.layout;
  ui.set_modal(workbench.overlay != Overlay::kNone && workbench.overlay != Overlay::kTour);
  workbench.is_narrow = window.width < kNarrow;
  // Over the main region the inspector opens for what is selected alone.
  Layout open = layout;
  open.inspector &= !workbench.is_narrow || workbench.selection().subject != Subject::kNothing;
  Regions regions = regions_of(open, window, ui.row_height());
  cycle_regions(ui, workbench, regions);
  if (workbench.maximized) regions = only_region(regions, ui.memory().region);
  draw_menu_bar(ui, workbench, regions.menu);
  if (const Panel* stages = panel_named("stages")) {
    const std::array choices = {stages};
    draw_region(ui, workbench, "stages", regions.rail, choices, *stages, kPanelLayer);
  }
  const Workspace& workspace = workspace_of(layout);
  draw_region(ui, workbench, "main", regions.main, workspace.main, main_panel_of(layout),
              kPanelLayer);
  if (const Panel* strip = strip_panel_of(layout)) {
    draw_region(ui, workbench, "strip", regions.strip, workspace.strip, *strip, kPanelLayer);
  }
  if (const Panel* inspector = panel_named("inspector")) {
    const std::array choices = {inspector};
    draw_region(ui, workbench, "inspector", regions.inspector, choices, *inspector,
                regions.inspector_is_over ? kOverlayLayer : kPanelLayer);
  }
  if (!workbench.maximized) draw_splitters(ui, layout, regions, workbench.is_narrow);
  workbench.asks_menu = false;
  mark_region(ui, regions);
  draw_status_bar(ui, workbench, regions.status);
}

void draw_panel_alone(Ui& ui, Workbench& workbench, const Panel& panel, const Rect& window) {
  const Surface background(ui, window, ui.theme().background);
  ui.memory().region = "main";
  const std::array choices = {&panel};
  draw_region(ui, workbench, "main", window, choices, panel, kPanelLayer);
  workbench.asks_menu = false;
}

}  // namespace trainscope::gui
