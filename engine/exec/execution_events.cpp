// Names, and what listeners ask for.
#include "engine/exec/execution_events.h"

#include <algorithm>

#include "engine/core/error.h"

namespace trainscope {

std::string_view name_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::kBind:
      return "bind";
    case CopyKind::kInitial:
      return "initial";
    case CopyKind::kRead:
      return "read";
  }
  CHECK_INVARIANT(false);
}

bool ExecutionListeners::wants_threads() const {
  return std::ranges::any_of(list_, &ExecutionEvents::wants_threads);
}

bool ExecutionListeners::wants_memory() const {
  return std::ranges::any_of(list_, &ExecutionEvents::wants_memory);
}

bool ExecutionListeners::one_at_a_time() const {
  return std::ranges::any_of(list_, &ExecutionEvents::one_at_a_time);
}

}  // namespace trainscope
