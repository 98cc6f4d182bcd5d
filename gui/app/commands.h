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

// "ID" of the table, or a word and its argument: "open PATH", "open MODEL.onnx --batch 8",
// "sizes --batch 8 --seq 128", "select KIND:NAME", "panel NAME", "budget 60%", "theme NAME",
// "scale S", "save_layout NAME", "layout NAME", "delete_layout NAME".
//
// What is wrong with it whatever is open; empty: nothing.
std::string fault_of_command(std::string_view text);
// The same of the words that say sizes of a model.
std::string fault_of_sizes(std::string_view words);

// False, and a notice, where there is no such command, or it cannot be run now.
bool run_command(Workbench& workbench, std::string_view text);

// Runs the command whose key the chord is, if there is one; true where there was.
bool run_chord(Workbench& workbench, const Chord& chord);

}  // namespace trainscope::gui
