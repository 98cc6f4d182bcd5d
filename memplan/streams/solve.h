// The answer to a placement problem of several streams.
#pragma once

#include "memplan/solution.h"
#include "memplan/streams/problem.h"

namespace trainscope::memplan {

// Minimises the height until it meets the lower bound (or the capacity), the methods are used up or
// the time is; `options.method` does not count. Where the dependencies leave only one order, as in
// one stream, this is the problem of intervals and its solution; else the bound is the heaviest set
// of buffers of which no two may share bytes, or of those alive at one operation where there are
// too many. The method is the placer of the intervals, or "stack", "first_fit" or "pushed_down"
// (first fits in which what was too high goes earlier).
[[nodiscard]] Result solve_streams(const StreamProblem& problem, const Options& options = {});

}  // namespace trainscope::memplan
