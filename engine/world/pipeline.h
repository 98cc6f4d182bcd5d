// A step cut into the stages of a pipeline, each a graph of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

struct PipelineStage {
  Graph graph;
  std::vector<std::int64_t> workspaces;  // by NodeId
};

// Cuts where one activation alone passes on, so that the slowest stage is as quick as it can be;
// `seconds` and `workspaces` by NodeId. What backward makes belongs to the stage of the forward
// node that it is the gradient of. A stage receives what it reads of others; a parameter that
// several read is on each of them, its gradient goes from one to the other; nodes that read no
// parameter (masks) run wherever they are needed. Fails with kUsage for more stages than there are
// pieces.
std::vector<PipelineStage> cut_stages(const Graph& graph, const OpTable& ops, std::int64_t stages,
                                      std::span<const double> seconds,
                                      std::span<const std::int64_t> workspaces);

// Micro-batches whose activations a stage holds at most: stages and micro-batches counted from 0 on
// in "one forward, one backward" (Narayanan et al. 2019 and 2021).
std::int64_t micro_batches_in_flight(std::int64_t stage, std::int64_t stages,
                                     std::int64_t micro_batches);

}  // namespace trainscope
