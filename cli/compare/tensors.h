// The tensors of two or three runs beside each other: `compare`'s section on numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/command.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// Of A with each of the others, B and perhaps C. Exit code 9 where a tensor is beyond its limit.
// `top`: how many tensors are shown, those most over their limits first. Throws kUsage for traces
// that cannot be compared.
Outcome compare_numerics(const std::vector<profiler::Trace>& traces, std::size_t top);

}  // namespace trainscope
