// The line above a panel: its title or tabs, and what can be done with it.
#pragma once

#include <span>

#include "gui/ui/ui.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

void draw_region_head(Ui& ui, Workbench& workbench, const Rect& rect,
                      std::span<const Panel* const> choices, const Panel& shown);

}  // namespace trainscope::gui
