// The first tensor of a replayed step that holds what no tensor should, and where that came from.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/run/numerics/replay.h"

namespace trainscope {

struct BadOrigin {
  profiler::TraceRow bad;                  // the first with a NaN or +infinity
  std::vector<profiler::TraceRow> inputs;  // what the node read that made it
  // Back from there: of each node's inputs the one with the largest element, as long as a node made
  // it, the nearest first; six at most.
  std::vector<profiler::TraceRow> chain;
};

// Of a replay of `step`, whose loss was no number, and of the step before it. Throws kUsage where
// the replay has nothing that is no number.
BadOrigin bad_origin(const Replayed& replayed, std::int64_t step);

// The absolute value of the largest element.
double largest(const profiler::TensorStatistics& statistics);

}  // namespace trainscope
