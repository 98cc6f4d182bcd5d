// What no recomputation can beat: the least time of a step whose arena is within so many bytes.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/plan/program.h"
#include "engine/recompute/step_model.h"
#include "memplan/remat/graph.h"
#include "memplan/remat/problem.h"

namespace trainscope {

// The steps it is about run every node first in the order of the plain one, and may recompute, any
// number of times, what the model says may be: nothing waits in host memory.
//
// The units of the model are made to find plans, and may count a byte twice that a layout has once.
// Here a node is one call, and no byte counts that could be shared: not what may lie inside another
// value, nor in a state, nor, while the node runs, a result that may take an input's place.
class TimeBound {
 public:
  // `plain` is the step without recomputation, `seconds` the time of each of its nodes by NodeId.
  // Asked to stop, seconds_within() throws Stopped.
  TimeBound(const Program& plain, std::span<const double> seconds, const StepModel& model,
            const std::stop_token& stop = {});

  // 0: not known.
  double seconds_within(std::int64_t arena_bytes) const;

 private:
  std::int64_t persistent_bytes_;
  // The same step, its shared bytes counted in different places: each is a bound.
  std::vector<memplan::RematGraph> countings_;
};

}  // namespace trainscope
