// The list of panels.
#pragma once

#include <span>
#include <string_view>

#include "gui/workbench/panel.h"

namespace trainscope::gui {

std::span<const Panel> all_panels();
const Panel* panel_named(std::string_view id);  // null where there is none

}  // namespace trainscope::gui
