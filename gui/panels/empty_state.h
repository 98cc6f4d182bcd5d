// What a panel shows where it has nothing to show: why, and what would change that.
#pragma once

#include <string>
#include <string_view>

#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// In the middle of the rectangle; the command line can be copied.
void draw_empty(Ui& ui, Workbench& workbench, const Rect& rect, std::string_view title,
                const Message& message);

// Draws why there is no run, or nothing on this topic, and returns false; true where there is one.
bool has_content(Ui& ui, Workbench& workbench, const Rect& rect, Topic topic, bool is_there,
                 std::string_view title);

// "trainscope VERB RUN" of the active run.
std::string twin_of_run(Workbench& workbench, std::string_view verb);

}  // namespace trainscope::gui
