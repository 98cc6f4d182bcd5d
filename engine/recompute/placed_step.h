// What orders of units would need once placed, without making their graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/plan/execution_order.h"
#include "engine/plan/lifetimes.h"
#include "engine/plan/program.h"
#include "engine/recompute/rematerialize.h"
#include "engine/recompute/step_model.h"

namespace trainscope {

class PlacedStep {
 public:
  // `plain` is the step without recomputation.
  PlacedStep(const Program& plain, const LowerOptions& lower);

  struct Height {
    std::int64_t arena_bytes = 0;
    std::int64_t bound_bytes = 0;  // no layout of this order is lower
    std::string_view method = {};  // memplan's, that found the layout
  };

  ExecutionOrder order_with(std::span<const Rematerialization> rematerializations) const;
  // With the arena that a program of this order gets from lower().
  Height place(const ExecutionOrder& order) const;
  // The same or a little higher, many times as quickly: memplan::Patience::kGlance. `first` is the
  // method that served a neighbour.
  Height glance(const ExecutionOrder& order, std::string_view first) const;

 private:
  Height place(const ExecutionOrder& order, const memplan::Options& options) const;

  const Graph graph_;
  const SpacePlan arena_;  // without recomputation
  const LowerOptions lower_;
  LifetimeFinder lifetimes_;
  std::vector<NodeId> order_;
  std::vector<std::int64_t> workspace_of_;  // bytes by NodeId
};

}  // namespace trainscope
