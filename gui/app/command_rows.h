// The rows of the command table, by menu.
#pragma once

#include <span>

#include "gui/workbench/panel.h"

namespace trainscope::gui {

std::span<const AppCommand> file_commands();
std::span<const AppCommand> view_commands();
std::span<const AppCommand> go_commands();
std::span<const AppCommand> help_commands();

}  // namespace trainscope::gui
