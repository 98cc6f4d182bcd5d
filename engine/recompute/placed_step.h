// What orders of units would need once placed, without making their graphs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/plan/lifetimes.h"
#include "engine/plan/program.h"
#include "engine/plan/run_order.h"
#include "engine/recompute/repeats.h"
#include "engine/recompute/step_model.h"

namespace trainscope {

// All arguments must outlive it.
class PlacedStep {
 public:
  // `plain` is the step without recomputation.
  PlacedStep(const Program& plain, const LowerOptions& lower);

  RunOrder with_repeats(std::span<const Repeat> repeats) const;
  // The arena that a program of this order gets from lower().
  std::int64_t arena_bytes(const RunOrder& order) const;

 private:
  const Program& plain_;
  const LowerOptions& lower_;
  LifetimeFinder lifetimes_;
  std::vector<NodeId> order_;
  std::vector<std::int64_t> workspace_of_;  // bytes by NodeId
};

}  // namespace trainscope
