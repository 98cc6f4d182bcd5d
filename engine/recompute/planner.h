// The recompute planner of memplan on the units of a step.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "engine/recompute/step_model.h"
#include "memplan/remat/planner.h"
#include "memplan/remat/problem.h"

namespace trainscope {

struct PlannedOrder {
  std::vector<int> order;  // units, as rematerializations_of takes them
  double seconds = 0.0;    // of the step
};

// Bytes here are those of the units' values and workspaces: without parameters, states and inputs.
class RecomputePlanner {
 public:
  // Asked to stop, every function throws Stopped.
  explicit RecomputePlanner(const StepModel& model, std::stop_token stop = {});
  RecomputePlanner(const RecomputePlanner&) = delete;
  RecomputePlanner& operator=(const RecomputePlanner&) = delete;

  // The quickest order found within the budget, in so many seconds or before; none when no order
  // can be.
  std::optional<PlannedOrder> plan(std::int64_t budget_bytes, memplan::RematEffort effort,
                                   double seconds = std::numeric_limits<double>::infinity());

  // Sets of units to recompute when the backward phase first needs them, by rising time and falling
  // bytes: the front, and of other methods ("sqrt_n", "knapsack") the plans they have.
  std::vector<std::vector<bool>> front();
  std::vector<std::vector<bool>> baseline(std::string_view method) const;

  std::int64_t least_front_bytes();
  std::int64_t plain_peak_bytes() const { return plain_peak_bytes_; }  // every unit once
  std::int64_t least_bytes() const { return least_bytes_; }  // of any order: one unit's needs
  int hungriest_unit() const { return hungriest_unit_; }     // the unit that needs them

 private:
  std::vector<std::vector<bool>> unit_sets(std::span<const memplan::FrontPoint> points) const;
  void add_node(const StepModel& model, int unit, std::vector<std::int32_t>& node_of_unit);

  memplan::RematProblem problem_;
  std::optional<memplan::RematPlanner> planner_;  // of the problem
  std::vector<int> unit_of_node_;
  std::size_t unit_count_ = 0;
  std::int64_t plain_peak_bytes_ = 0;
  std::int64_t least_bytes_ = 0;
  int hungriest_unit_ = 0;
  std::stop_token stop_;
};

}  // namespace trainscope
