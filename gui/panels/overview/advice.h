// What `trainscope advise` says of a run: why its step needs its memory and time, and levers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "gui/budget/json_process.h"
#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

struct AdviceState {
  struct OfRun {
    std::unique_ptr<JsonProcess> process = {};  // null: nobody has asked yet
    std::uint64_t seen = 0;                     // the run's reading when it was last looked at
    bool is_wanted = false;                     // somebody waits for the answer that is under way
  };
  bool is_shown = false;  // all that is said, in place of the curves
  // Of each open run. Ends with the first that is closed, and what is under way with it.
  std::map<const RunData*, OfRun> runs = {};

  const JsonProcess* process_of(const RunData* run) const;
};

// The command line that prints what is drawn.
std::string twin_of_advice(const RunData& run);
// Asks of the active run, again where there is an answer.
void ask_for_advice(Workbench& workbench);
// Asks by itself, where the window works ahead and the run is not being trained; takes what has
// been answered.
void look_for_advice(Workbench& workbench);

// The height of the first levers in so much room; 0: nobody has asked, there is no answer (all of
// it says why), or no room.
float advice_lines_height(const Ui& ui, Workbench& workbench, float room);
// The first levers as a line each, or that they are being looked for.
void draw_advice_lines(Ui& ui, Workbench& workbench, const Rect& rect);
// All of it; asks when it is drawn for the first time.
void draw_advice(Ui& ui, Workbench& workbench, const Rect& rect);

}  // namespace trainscope::gui
