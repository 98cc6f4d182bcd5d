// Stages as records of a run's folder; of plans see record_plan.h.
#pragma once

#include "engine/bundle/format.h"
#include "engine/passes/stage.h"

namespace trainscope {

// `before` is the stage before it; null for the first. The file name is the writer's.
StageRecord stage_record(const Stage& stage, const Stage* before);

}  // namespace trainscope
