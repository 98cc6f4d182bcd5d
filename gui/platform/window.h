// The window on a display, by GLFW and OpenGL 3.3.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gui/workbench/settings.h"

namespace trainscope::gui {

struct WindowWishes {
  std::vector<std::filesystem::path> paths = {};
  std::string view = {};                   // as --at has it
  std::vector<std::string> commands = {};  // run one after the other once all is open
  Settings settings = {};
  std::filesystem::path settings_file = {};  // where they are kept; empty: nowhere
};

// Until it is closed. Throws kNoDevice where there is no display.
void run_window(WindowWishes wishes);

}  // namespace trainscope::gui
