// What `trainscope advise` says of the run: why its step needs its memory and time, and levers.
#pragma once

#include <memory>
#include <string>

#include "gui/budget/json_process.h"
#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

struct AdviceState {
  const RunData* of = nullptr;
  bool is_shown = false;
  std::unique_ptr<JsonProcess> process = {};  // null: nobody has asked yet
};

// The command line that prints what is drawn.
std::string twin_of_advice(const RunData& run);
// Of the active run, which has one; asks for it when it is drawn for the first time.
void draw_advice(Ui& ui, Workbench& workbench, AdviceState& state, const Rect& rect);

}  // namespace trainscope::gui
