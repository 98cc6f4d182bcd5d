// Views as text, and those that a run's notes keep.
#pragma once

#include <string>
#include <string_view>

#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// "PANEL", "PANEL,KIND:NAME" or "PANEL,KEY=VALUE,KEY=VALUE,KIND:NAME": what is in the main region,
// what it shows (see ViewPart) and what is selected. A ',' of a value is %2C.
std::string view_of(Workbench& workbench);
// What is wrong with its panel; empty: nothing. What is selected depends on the run.
std::string fault_of_view(std::string_view view);
// False, and a notice, where the view is not of this run.
bool show_view(Workbench& workbench, std::string_view view);
// The command line that opens it.
std::string command_of_view(Workbench& workbench);
// The command line that draws it into a PNG.
std::string command_of_picture(Workbench& workbench);

// Adds a note of what is seen now to the run's folder; an empty text makes it a bookmark.
void add_note(Workbench& workbench, std::string_view text);
void remove_note(Workbench& workbench, std::size_t note);

}  // namespace trainscope::gui
