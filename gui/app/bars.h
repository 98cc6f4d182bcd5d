// The menu at the top and the status line at the bottom.
#pragma once

#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

void draw_menu_bar(Ui& ui, Workbench& workbench, const Rect& rect);
void draw_status_bar(Ui& ui, Workbench& workbench, const Rect& rect);

}  // namespace trainscope::gui
