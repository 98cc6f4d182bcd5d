// What a stage would cost as a step: time by the model of a machine, and memory by the lives of its
// values, before kernels are chosen and bytes are placed.
#pragma once

#include <cstdint>

#include "engine/ir/graph.h"
#include "engine/machine/machine.h"

namespace trainscope {

struct StageEstimate {
  double seconds = 0.0;         // of all nodes one after the other (modelled_seconds)
  std::int64_t live_bytes = 0;  // the most that are alive at once, in the order of the nodes
};

// Parameters, states, constants and inputs are alive throughout, what nodes make from there to its
// last reader; a view has the bytes of what it views. In-place updates are not looked for.
StageEstimate estimate_stage(const Graph& graph, const Machine& machine);

}  // namespace trainscope
