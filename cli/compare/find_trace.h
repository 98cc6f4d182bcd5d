// Where a trace of numbers is, of a run or of another engine.
#pragma once

#include <optional>
#include <string>

#include "profiler/numerics/trace.h"

namespace trainscope {

// The trace of a run's newest session, of another engine's run, or that a folder is itself; none:
// it holds none.
std::optional<profiler::Trace> find_trace(const std::string& folder);

}  // namespace trainscope
