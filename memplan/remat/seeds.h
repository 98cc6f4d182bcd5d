// Plans to start the search from, as matrices of holds.
#pragma once

#include <cstdint>
#include <span>

#include "memplan/remat/bit_rows.h"
#include "memplan/remat/graph.h"
#include "memplan/remat/plan.h"

namespace trainscope::memplan {

// Every value from its first execution to its last use.
[[nodiscard]] BitRows hold_all(const RematGraph& graph);

// The values in `dropped` go after their last use up to node `frontier`. Later they are recomputed
// when first needed, and then stay for as long as anybody might need them. All others stay as long
// from the start. Retention::load() shortens the holds to what is read.
[[nodiscard]] BitRows hold_with_reruns(const RematGraph& graph, std::int32_t frontier,
                                       std::span<const std::int32_t> dropped);

// What the plan, whose first executions keep the order of the nodes, has in memory between them.
[[nodiscard]] BitRows holds_of(const RematGraph& graph, const RematPlan& plan);

}  // namespace trainscope::memplan
