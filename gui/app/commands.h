// The one table of commands: menus, palette, keys and `--exec` all run these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// Ours, then those of the panels.
const std::vector<AppCommand>& all_commands();
const AppCommand* command_named(std::string_view id);  // null where there is none
bool is_enabled(const AppCommand& command, const Workbench& workbench);

// "ID" of the table, or "open PATH", "select KIND:NAME", "panel NAME", "theme NAME", "scale S".
// False, and a notice, where there is no such command, or it cannot be run now.
bool run_command(Workbench& workbench, std::string_view text);

// Runs the command whose key the chord is, if there is one; true where there was.
bool run_chord(Workbench& workbench, const Chord& chord);

}  // namespace trainscope::gui
