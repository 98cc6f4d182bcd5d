// The stages of a run, or those that a model is compiled to.
#pragma once

#include "cli/flags/invocation.h"
#include "cli/source.h"
#include "engine/stage_history.h"

namespace trainscope {

// With the order of execution and rematerializations that the program of a model would have.
StageHistory stage_history(const Source& source, const Invocation& settled);

}  // namespace trainscope
