// Buffers that lie inside others: parts of a Concat in its result, what Slice and Split make in
// their input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/rules/byte_ranges.h"
#include "engine/plan/execution_order.h"
#include "engine/plan/lifetimes.h"

namespace trainscope {

// By NodeId: what the ops say; empty: there is nothing in the graph that could lie inside another.
std::vector<ByteRanges> ranges_of_nodes(const Graph& graph);

struct RangeFacts {
  std::span<const ByteRanges> ranges_of;     // by NodeId
  std::span<const std::int64_t> workspaces;  // bytes by step; empty: none
};

// Puts buffers into others where no byte is ever needed for two things at once and the most bytes
// alive while any of those concerned lives does not grow. `lifetimes` are complete but for that;
// the buffers keep their order.
void share_ranges(const Graph& graph, const ExecutionOrder& order, const RangeFacts& facts,
                  Lifetimes& lifetimes);

}  // namespace trainscope
