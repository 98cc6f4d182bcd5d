// Names of the kinds of events.
#include "profiler/record/event.h"

namespace trainscope::profiler {

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return "step";
    case EventKind::kStepPart:
      return "part";
    case EventKind::kBatchWait:
      return "batch wait";
    case EventKind::kBind:
      return "bind";
    case EventKind::kInitial:
      return "initial";
    case EventKind::kRead:
      return "read";
    case EventKind::kCall:
      return "call";
    case EventKind::kBodyCall:
      return "body call";
    case EventKind::kSection:
      return "section";
    case EventKind::kWork:
      return "work";
    case EventKind::kEvaluation:
      return "evaluation";
    case EventKind::kCheckpoint:
      return "checkpoint";
    case EventKind::kStart:
      return "start";
    case EventKind::kJoin:
      return "join";
    case EventKind::kIdle:
      return "idle";
    case EventKind::kLibrary:
      return "library";
    case EventKind::kProbe:
      return "machine probe";
    case EventKind::kDeviceWork:
      return "device work";
    case EventKind::kInputs:
      return "inputs";
    case EventKind::kResults:
      return "results";
    case EventKind::kRankWait:
      return "rank wait";
    case EventKind::kLoss:
      return "loss";
    case EventKind::kLearningRate:
      return "learning rate";
    case EventKind::kResidentBytes:
      return "resident bytes";
    case EventKind::kTaskClock:
      return "task clock";
    case EventKind::kMinorFaults:
      return "minor faults";
    case EventKind::kMajorFaults:
      return "major faults";
    case EventKind::kVoluntarySwitches:
      return "voluntary switches";
    case EventKind::kForcedSwitches:
      return "forced switches";
    case EventKind::kCycles:
      return "cycles";
    case EventKind::kInstructions:
      return "instructions";
    case EventKind::kCacheMisses:
      return "cache misses";
    case EventKind::kBranchMisses:
      return "branch misses";
    case EventKind::kCountedRows:
      return "counted rows";
    case EventKind::kClockSpeed:
      return "clock speed";
    case EventKind::kExchangeSpeed:
      return "exchange speed";
    case EventKind::kBoundBytes:
      return "bound bytes";
    case EventKind::kTraceLevel:
      return "trace level";
    case EventKind::kTiedWork:
      return "tied work";
    case EventKind::kOutsideWork:
      return "work outside of calls";
    case EventKind::kUntiedWork:
      return "untied work";
    case EventKind::kUntimedWork:
      return "untimed work";
    case EventKind::kDroppedRecords:
      return "dropped records";
    case EventKind::kTraceOverhead:
      return "trace overhead";
    case EventKind::kStolenTime:
      return "stolen time";
    case EventKind::kUnreadBytes:
      return "unread bytes";
    case EventKind::kRuntimeCallTime:
      return "runtime call time";
    case EventKind::kDriverCallTime:
      return "driver call time";
    case EventKind::kDeviceWaitTime:
      return "device wait time";
    case EventKind::kAllocations:
      return "allocations";
  }
  return "unknown";
}

}  // namespace trainscope::profiler
