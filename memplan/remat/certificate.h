// What no plan can beat: bounds on the time within a budget, and on the budget itself.
#pragma once

#include <cstdint>

#include "memplan/remat/graph.h"

namespace trainscope::memplan {

// The node that needs most, and what it needs (see RematGraph::least_bytes).
struct LeastBudget {
  std::int64_t bytes = 0;
  std::int32_t node = 0;
};
[[nodiscard]] LeastBudget least_budget(const RematGraph& graph);

// A time that every plan takes which keeps the budget and first runs the nodes in the problem's
// order; infinity if there is no such plan for sure.
//
// Between two frontiers f < e the first executions of f+1..e read values that are in memory at f,
// or recomputed in between. What is in memory at f fits the budget, so the reruns between f and e
// take at least max over prices p of (minimum cut at p) - p * budget. Ranges do not overlap, so
// their reruns add up; the best chain of frontiers is found by dynamic programming. `frontiers`
// limits how many are looked at: the work grows with its square.
[[nodiscard]] double least_time(const RematGraph& graph, std::int64_t budget_bytes,
                                std::int32_t frontiers);

}  // namespace trainscope::memplan
