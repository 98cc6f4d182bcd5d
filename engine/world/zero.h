// ZeRO: optimizer states, gradients and parameters sharded over the data-parallel devices.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// A node that updates parameters. Its inputs are parameters, gradients, states in groups of as
// many, then scalars; its outputs the new parameters and states.
struct OptimizerNode {
  NodeId node = kNoNode;
  std::vector<ValueId> parameters;
  std::vector<ValueId> gradients;
  std::vector<ValueId> states;  // group by group
};
std::vector<OptimizerNode> optimizer_nodes(const Graph& graph);

// What backward makes of a gradient, before micro-batches are added up.
ValueId raw_gradient(const Graph& graph, ValueId gradient);

// The step as one of `devices` runs it (Rajbhandari et al. 2020). Stage 1: states are shards
// and each device updates its own. Stage 2: each gradient is reduced to a shard as soon as it is
// there. Stage 3: parameters are shards too, gathered before each node that reads them and dropped
// after it; ahead of time as long as at most kPrefetchElements, and a kPrefetchDivisor-th of all,
// wait to be read. Tensors are cut one by one, the last shard padded.
void apply_zero(Graph& graph, const OpTable& ops, int stage, std::int64_t devices);

// DeepSpeed's default (stage3_prefetch_bucket_size).
inline constexpr std::int64_t kPrefetchElements = 50'000'000;
// Of a small model: else all of it would be gathered at once.
inline constexpr std::int64_t kPrefetchDivisor = 8;

}  // namespace trainscope
