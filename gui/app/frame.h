// The window's regions: menu, rail of stages, main region, strip, inspector, status.
#pragma once

#include "gui/ui/ui.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

void draw_window(Ui& ui, Workbench& workbench, const Rect& window);
// One panel and its title, on the whole canvas.
void draw_panel_alone(Ui& ui, Workbench& workbench, const Panel& panel, const Rect& window);

// Where the regions are; empty: not there now.
struct Regions {
  Rect menu = {};
  Rect status = {};
  Rect rail = {};
  Rect main = {};
  Rect strip = {};
  Rect inspector = {};
  bool inspector_is_over = false;  // it lies over the main region
};
Regions regions_of(const Layout& layout, const Rect& window, float line);

}  // namespace trainscope::gui
