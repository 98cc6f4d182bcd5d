// Levers as flags of `train`.
#pragma once

#include <vector>

#include "cli/flags/settings.h"
#include "engine/advise/step_change.h"

namespace trainscope {

// The flags that make the change of a call with these settings.
std::vector<GivenFlag> flags_of(const StepChange& change, const Settings& settings);

}  // namespace trainscope
