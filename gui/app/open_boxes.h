// The boxes in which paths and sizes are typed.
#pragma once

#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// Puts one of kOpen, kOpenModel and kSizes over the window, its fields as they are at first: sizes
// are those of the active model.
void open_box(Workbench& workbench, Overlay box);

}  // namespace trainscope::gui
