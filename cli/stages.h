// The stages of a run, or those that a model is compiled to.
#pragma once

#include "cli/flags/invocation.h"
#include "cli/source.h"
#include "engine/stage_history.h"

namespace trainscope {

// Of a model, as `train` would compile it: with the order of execution, the rematerializations and
// the batch tiles of its program, and all graphs kept.
Stages compiled_stages(const Source& source, const Invocation& settled);

// Of a run, or of compiled_stages().
StageHistory stage_history(const Source& source, const Invocation& settled);

}  // namespace trainscope
