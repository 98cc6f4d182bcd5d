// The optimum of a small problem, by search over every state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memplan/remat/graph.h"
#include "memplan/remat/plan.h"

namespace trainscope::memplan {

enum class ExactStatus {
  kOptimal,     // `plan` takes the least time of all plans within the budget
  kImpossible,  // no plan keeps the budget
  kGaveUp,      // too many nodes or states
};

struct ExactResult {
  ExactStatus status = ExactStatus::kGaveUp;
  RematPlan plan = {};
};

// Over all plans that first run the nodes in the problem's order: any value may be recomputed any
// number of times, in any order. Dijkstra's search; a state is what is in memory and which node is
// the next to run for the first time.
[[nodiscard]] ExactResult solve_exactly(const RematGraph& graph, std::int64_t budget_bytes,
                                        std::size_t most_states);

}  // namespace trainscope::memplan
