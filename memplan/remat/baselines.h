// What others would do, priced on the same problem: to compare with, not to use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "memplan/remat/front.h"
#include "memplan/remat/graph.h"

namespace trainscope::memplan {

// One plan for each setting of a method.
struct RematBaseline {
  std::string_view name;
  std::vector<FrontPoint> points = {};
};

// none: everything is kept. sqrt_n: square root of n checkpoints, all else is recomputed (Chen et
// al. 2016). knapsack: of the values that backward reads, those with the most rerun time that fit
// into a share of their bytes, each seen for itself (PyTorch's activation_memory_budget), for 101
// shares, less those that choose the same. Empty for a problem without backward nodes. What each
// point drops, it drops at the last forward node.
[[nodiscard]] std::vector<RematBaseline> remat_baselines(const RematGraph& graph);

// The least time of a baseline's plans within the budget.
[[nodiscard]] std::optional<double> best_time_within(const RematBaseline& baseline,
                                                     std::int64_t budget_bytes);

}  // namespace trainscope::memplan
