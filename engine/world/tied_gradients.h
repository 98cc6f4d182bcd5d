// Gradients of parameters that several stages of a pipeline read.
#pragma once

#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// Backward adds up what several stages make of one gradient. Each of them keeps a sum of its own
// over the micro-batches instead, and they exchange these once a step, as Megatron-LM does with its
// tied embedding.
struct TiedGradient {
  ValueId sum = kNoValue;              // of all partials: what accumulation and optimizer read
  std::vector<NodeId> additions = {};  // that make it
  std::vector<ValueId> partials = {};  // what is added up, in order
  std::vector<int> stages = {};        // that make partials, rising
  std::vector<NodeId> kept = {};       // nodes that add the sum up over micro-batches
};

// Rows that the backward phase adds into another partial become a partial of their own, and so do
// matmuls in sums that the optimizer reads, for the other one may come from another stage.
void separate_sums(Graph& graph, const OpTable& ops, std::vector<std::int64_t>& workspaces);

// `stage_of` by NodeId.
std::vector<TiedGradient> find_tied_gradients(const Graph& graph, std::span<const int> stage_of);

}  // namespace trainscope
