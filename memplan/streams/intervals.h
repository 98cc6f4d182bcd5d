// Problems of intervals whose placements are placements for several streams.
#pragma once

#include "memplan/problem.h"
#include "memplan/streams/clocks.h"
#include "memplan/streams/problem.h"

namespace trainscope::memplan {

// Times are places in Clocks::order. Where one buffer's interval ends before another's begins,
// every use of the one happens before the birth of the other; the reverse need not be so.
struct IntervalProblem {
  Problem problem = {};
  bool exact = false;  // the reverse is so, too: only one order is possible
};

// Lifetimes begin with the first operation that the producer has not seen the end of, and end with
// the last use.
[[nodiscard]] IntervalProblem intervals_by_birth(const StreamProblem& problem, const Clocks& clocks,
                                                 const StreamLifetimes& lifetimes);

// Lifetimes begin with the producer and end with the last operation that has not seen the last use.
[[nodiscard]] IntervalProblem intervals_by_death(const StreamProblem& problem, const Clocks& clocks,
                                                 const StreamLifetimes& lifetimes);

}  // namespace trainscope::memplan
