// The words for kinds of faults.
#include "engine/bisect/local_fault.h"

#include "engine/core/error.h"

namespace trainscope {

std::string_view name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOp:
      return "op";
    case FaultKind::kGraph:
      return "graph";
    case FaultKind::kOptimizer:
      return "optimizer";
    case FaultKind::kState:
      return "state";
    case FaultKind::kStart:
      return "start";
    case FaultKind::kOverflow:
      return "overflow";
  }
  CHECK_INVARIANT(false);
}

}  // namespace trainscope
