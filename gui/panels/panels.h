// The list of panels.
#pragma once

#include <span>
#include <string_view>

#include "gui/workbench/panel.h"

namespace trainscope::gui {

std::span<const Panel> all_panels();
const Panel* panel_named(std::string_view id);  // null where there is none

// "60%" of the step without recomputation, "300MB": asks the Budget panel for a plan within it.
// False where the text is no budget, or no run is open.
bool ask_budget(Workbench& workbench, std::string_view text);

}  // namespace trainscope::gui
