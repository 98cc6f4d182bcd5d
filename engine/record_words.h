// The kinds of a program's calls, values, buffers and slices in the words of its record.
#pragma once

#include "engine/bundle/plan_rows.h"
#include "engine/plan/program.h"

namespace trainscope {

PlanPhase recorded_phase(Phase phase);
PlanSpaceKind recorded_kind(Space space);
PlanValueKind recorded_kind(ValueKind kind);
PlanSlice recorded_slice(TileSlice slice);
PlanCallKind recorded_kind(CallKind kind);
BufferClass recorded_class(BufferRole role);

}  // namespace trainscope
