// The tensors of two or three runs beside each other: `compare`'s section on numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// The trace of a run's newest session, of another engine's run, or that a folder is itself; none:
// it holds none.
std::optional<profiler::Trace> find_trace(const std::string& folder);

// Of A with each of the others, B and perhaps C. Exit code 9 where a tensor is beyond its limit.
// `top`: how many tensors are shown, those most over their limits first. Throws kUsage for traces
// that cannot be compared.
Outcome compare_numerics(const std::vector<profiler::Trace>& traces, std::size_t top);

}  // namespace trainscope
