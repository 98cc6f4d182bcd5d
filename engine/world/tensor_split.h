// Tensor parallelism: a step as one of several devices runs it that hold shards of its matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// Cuts weights as Megatron-LM does, and with them the values made of them, gradients and states;
// what cannot be cut stays whole on every device. Sums over the devices become nodes (AllReduce).
// `workspaces` (by NodeId) shrink as the bytes of their node. Fails with kUsage when the heads
// cannot be divided among so many devices, or nothing of the graph can.
void split_tensors(Graph& graph, const OpTable& ops, std::int64_t devices,
                   std::vector<std::int64_t>& workspaces);

}  // namespace trainscope
