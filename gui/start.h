// What `gui` and `shot` do before anything is drawn.
#pragma once

#include "gui/app/app.h"
#include "gui/arguments.h"

namespace trainscope::gui {

// Throws kUsage where the sizes do not fit the models among the paths, or leave one of theirs open.
void require_fitting_sizes(const Arguments& arguments);

// Opens the paths. Models are compiled meanwhile.
void open_paths(Workbench& workbench, const Arguments& arguments);

// The same for the window, with the view and the commands, or the welcome screen. Throws kUsage for
// a view that the run does not have; that of a model is shown when it is compiled.
void start_app(App& app, const Arguments& arguments);

}  // namespace trainscope::gui
