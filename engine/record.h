// Stages as records of a run's folder; of plans see record_plan.h.
#pragma once

#include "engine/bundle/format.h"
#include "engine/machine/machine.h"
#include "engine/passes/stage.h"

namespace trainscope {

// `before` is the stage before it; null for the first. The file name is the writer's. Time is by
// the machine's model; it and the live bytes are not known of a stage whose graph was not kept.
StageRecord stage_record(const Stage& stage, const Stage* before,
                         const Machine& machine = default_machine());

}  // namespace trainscope
