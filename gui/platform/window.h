// The window on a display, by GLFW and OpenGL 3.3.
#pragma once

#include <filesystem>

#include "gui/app/app.h"

namespace trainscope::gui {

// Until it is closed; then the settings are kept in the file, or nowhere where that is empty.
// Throws kNoDevice where there is no display.
void run_window(App& app, const std::filesystem::path& settings_file);

}  // namespace trainscope::gui
