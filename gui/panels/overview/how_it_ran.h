// The line below the Overview's title: what ran on which data, on what device, and as which
// session.
#pragma once

#include "gui/data/run_data.h"
#include "gui/ui/ui.h"

namespace trainscope::gui {

// Of the session that is shown; what finds no room is left out, names are shortened before.
void draw_how_it_ran(Ui& ui, const RunData& run, Rect row);

}  // namespace trainscope::gui
