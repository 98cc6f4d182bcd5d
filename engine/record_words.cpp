// One word of the record for each of a program's.
#include "engine/record_words.h"

namespace trainscope {

PlanPhase recorded_phase(Phase phase) {
  if (phase == Phase::kForward) return PlanPhase::kForward;
  return phase == Phase::kBackward ? PlanPhase::kBackward : PlanPhase::kUpdate;
}

PlanSpaceKind recorded_kind(Space space) {
  return space == Space::kHost ? PlanSpaceKind::kHost : PlanSpaceKind::kDevice;
}

PlanValueKind recorded_kind(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return PlanValueKind::kInput;
    case ValueKind::kParameter:
      return PlanValueKind::kParameter;
    case ValueKind::kState:
      return PlanValueKind::kState;
    case ValueKind::kConstant:
      return PlanValueKind::kConstant;
    case ValueKind::kNode:
      break;
  }
  return PlanValueKind::kNode;
}

PlanSlice recorded_slice(TileSlice slice) {
  switch (slice) {
    case TileSlice::kExamples:
      return PlanSlice::kExamples;
    case TileSlice::kPartial:
      return PlanSlice::kPartial;
    case TileSlice::kElements:
      return PlanSlice::kElements;
    case TileSlice::kWhole:
      break;
  }
  return PlanSlice::kWhole;
}

PlanCallKind recorded_kind(CallKind kind) {
  switch (kind) {
    case CallKind::kTransfer:
      return PlanCallKind::kTransfer;
    case CallKind::kAddPartials:
      return PlanCallKind::kAddPartials;
    case CallKind::kStateCopy:
      return PlanCallKind::kStateCopy;
    case CallKind::kProgram:
      return PlanCallKind::kProgram;
    case CallKind::kKernel:
      break;
  }
  return PlanCallKind::kKernel;
}

BufferClass recorded_class(BufferRole role) {
  switch (role) {
    case BufferRole::kParameter:
      return BufferClass::kParameter;
    case BufferRole::kState:
      return BufferClass::kState;
    case BufferRole::kConstant:
      return BufferClass::kConstant;
    case BufferRole::kInput:
      return BufferClass::kInput;
    case BufferRole::kGradient:
      return BufferClass::kGradient;
    case BufferRole::kUpdate:
      return BufferClass::kUpdate;
    case BufferRole::kWorkspace:
      return BufferClass::kWorkspace;
    case BufferRole::kHeld:
      return BufferClass::kHeld;
    case BufferRole::kActivation:
      break;
  }
  return BufferClass::kActivation;
}

}  // namespace trainscope
