// What `train` says at its end.
#pragma once

#include "cli/command.h"
#include "engine/run/training_run.h"

namespace trainscope {

Outcome summary_of(const TrainingResult& result);
// With --dry-run.
Outcome summary_of(const TrainingPreview& preview);

}  // namespace trainscope
