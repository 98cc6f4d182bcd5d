// What a panel shows, for the clipboard.
#pragma once

#include <cstdint>

#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

enum class CopyChoice : std::uint8_t {
  kTsv,
  kMarkdown,
  kCommand,  // the command line that prints the same numbers
  kView,     // the command line that opens the window with this view
  kPicture,  // the command line that draws it into a file
};

bool can_copy(const Workbench& workbench, const Panel& panel, CopyChoice choice);
// Puts it on the clipboard when the frame is drawn.
void copy_from(Workbench& workbench, const Panel& panel, CopyChoice choice);

}  // namespace trainscope::gui
