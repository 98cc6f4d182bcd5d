// A panel as a file, without display and graphics card.
#pragma once

#include "gui/arguments.h"

namespace trainscope::gui {

// Throws kUsage and kIo, and kBadInput for what cannot be opened or selected.
void take_shot(const Arguments& arguments);

}  // namespace trainscope::gui
