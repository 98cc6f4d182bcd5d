// Engine values as records of a run's folder.
#pragma once

#include "engine/bundle/format.h"
#include "engine/compile.h"
#include "engine/passes/stage.h"
#include "engine/plan/program.h"

namespace trainscope {

// `before` is the stage before it; null for the first. The file name is the writer's.
StageRecord stage_record(const Stage& stage, const Stage* before);

// plan.json: sizes, a row for each instruction and each buffer (docs/run-format.md).
Json plan_record(const Program& program);

// Sizes alone: what `plan` prints.
Json plan_sizes(const Program& program);

// plan.json's "recompute": what it saves and costs, as predicted.
Json recompute_record(const RecomputeSummary& summary);

}  // namespace trainscope
