// A stop of memplan's searches as the engine's.
#pragma once

#include "engine/core/progress.h"
#include "memplan/stopped.h"

namespace trainscope {

// What `work` returns; Stopped for memplan's.
template <typename Work>
auto stoppable(const Work& work) {
  try {
    return work();
  } catch (const memplan::Stopped&) {
    throw Stopped();
  }
}

}  // namespace trainscope
