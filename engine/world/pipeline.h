// A step cut into the stages of a pipeline, each a graph of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/world/timeline.h"

namespace trainscope {

struct PipelineStage {
  Graph graph;
  std::vector<std::int64_t> workspaces;  // by NodeId
};

// machine.layout.pipeline of them, cut where one activation alone passes on (pieces.h), so that the
// slowest is as quick as it can be (stage_balance.h). A stage receives what it reads of others; a
// parameter that several read is on each of them, and they sum its gradient once a step
// (tied_gradients.h); nodes that read no parameter (masks) run wherever they are needed.
// `workspaces` by NodeId. Fails with kUsage for more stages than there are pieces with parameters.
std::vector<PipelineStage> cut_stages(const Graph& graph, const OpTable& ops,
                                      const MachineModel& machine,
                                      std::span<const std::int64_t> workspaces);

}  // namespace trainscope
