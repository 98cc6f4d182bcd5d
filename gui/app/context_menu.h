// What can be done with a panel, in a menu at the mouse.
#pragma once

#include "gui/ui/ui.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// Opens with the right button within `body`, which is the panel's part of a region, or when
// `view.menu` asks for that of the region that has the keys.
void draw_context_menu(Ui& ui, Workbench& workbench, const Panel& panel, const Rect& body);

}  // namespace trainscope::gui
