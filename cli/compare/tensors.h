// The tensors of two or three runs beside each other: `compare`'s section on numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/command.h"
#include "cli/compare/replayed_steps.h"

namespace trainscope {

// Of A with each of the others, B and perhaps C. Exit code 9 where a tensor is beyond its limit.
// Of the call's flags --top says how many tensors are shown, those most over their limits first,
// and --replay whether steps run again. Throws kUsage for traces that cannot be compared, and
// SignalCame.
Outcome compare_numerics(const std::vector<TracedSide>& sides, const Invocation& invocation);

}  // namespace trainscope
