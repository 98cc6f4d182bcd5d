// Rows of `plan --micro-batches`, for people and for programs.
#pragma once

#include "cli/command.h"
#include "engine/run/batch/micro_batches.h"

namespace trainscope {

Outcome splits_outcome(const PlannedSplits& splits);

}  // namespace trainscope
