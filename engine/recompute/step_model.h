// A training step as the recompute planner sees it: units of nodes that run together, the bytes
// that each leaves behind, and who reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/plan/program.h"
#include "engine/recompute/rematerialize.h"

namespace trainscope {

// A unit is what is kept or recomputed as a whole. One kernel call with the views of its outputs
// and the calls that write over them in place; or, without a call, a part of what another one made,
// over which a call of its own may write.
struct StepUnit {
  std::vector<NodeId> nodes;       // in order of execution, views included
  std::vector<int> inputs;         // units whose bytes it reads, ascending
  std::int64_t bytes = 0;          // of its outputs, as long as anything reads any of them
  std::vector<ValueId> kept = {};  // what these bytes are
  std::int64_t workspace_bytes = 0;
  double seconds = 0.0;
  bool forward = false;      // may be recomputed
  bool offloadable = false;  // the step leaves nothing of it
  // Wishes of the user, for the planner.
  bool keep = false;       // must not be recomputed
  bool recompute = false;  // must: the backward phase reads what the second execution makes
};

struct StepModel {
  std::vector<StepUnit> units;   // in order of execution; the last one reads what the step leaves
  std::int64_t fixed_bytes = 0;  // parameters, states, constants: there throughout
  double seconds = 0.0;          // of all units
  std::vector<std::int64_t> position = {};  // by NodeId: in order of execution
};

// `program` is the step without recomputation, `seconds` the time of each node by NodeId.
StepModel step_model(const Program& program, std::span<const double> seconds);

// An order of units, a unit perhaps several times. Every unit appears for the first time in the
// order of the model, with its inputs before it. Where one in host memory appears again, its values
// come back from there instead.
struct UnitOrder {
  std::vector<int> units;
  std::vector<bool> in_host;  // by unit; empty: none
};

// What to insert into the step when its units run in this order.
std::vector<Rematerialization> rematerializations_of(const Graph& graph, const StepModel& model,
                                                     const UnitOrder& order);

// The order in which the units marked in `recomputed` run a second time, and those marked in
// `in_host` (empty: none) come back, when the backward phase first reads them or something that is
// recomputed does.
UnitOrder on_demand_order(const StepModel& model, const std::vector<bool>& recomputed,
                          std::vector<bool> in_host = {});

}  // namespace trainscope
