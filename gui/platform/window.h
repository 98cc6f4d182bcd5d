// The window on a display, by GLFW and OpenGL 3.3.
#pragma once

#include "gui/app/app.h"

namespace trainscope::gui {

// Until it is closed. Throws kNoDevice where there is no display.
void run_window(App& app);

}  // namespace trainscope::gui
