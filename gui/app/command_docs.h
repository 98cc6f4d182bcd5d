// The table of commands for docs/gui.md.
#pragma once

#include <string>

namespace trainscope::gui {

std::string commands_markdown();

}  // namespace trainscope::gui
