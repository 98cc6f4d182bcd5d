// How a run is trained on with another plan: as a command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "gui/budget/step_planner.h"

namespace trainscope::gui {

// The newest step that the run can be resumed from; 0: none.
std::int64_t newest_checkpoint_step(const RunReader& run);

// The flags of `train`, `plan` and others that ask for a plan. `pins` is the file of its pins.
std::vector<std::string> plan_flags(const PlanRequest& request, const std::string& pins);
// The pins as lines of such a file; empty without pins.
std::string pins_text(const PlanRequest& request);
// The file of the run's folder for these pins, of a name that no others have; empty without pins.
// Both throw kUsage for names that no line can hold.
std::string pins_file(const RunReader& run, const PlanRequest& request);
// Writes it, where there are any pins: the run goes on with them. Throws kIo.
std::string write_pins(const RunReader& run, const PlanRequest& request);

// The folder of the new run that `steps` more steps need, beside the run's own: it has fewer left,
// and its learning rate comes to an end with its last step. Empty: the run itself goes on.
std::filesystem::path new_run_folder(const RunReader& run, std::int64_t steps);

// What follows the program's name: `steps` more steps from the newest checkpoint, in the folder
// `new_run` (new_run_folder()) or, where that is empty, in the run itself, which becomes so much
// longer where it has fewer left. Throws kUsage when there is no checkpoint.
std::vector<std::string> train_words(const RunReader& run, const PlanRequest& request,
                                     const std::string& pins, std::int64_t steps,
                                     const std::filesystem::path& new_run);

// Words as a shell takes them.
std::string command_line(std::span<const std::string> words);

}  // namespace trainscope::gui
