// Slice, Split and Concat where they take out or put in elements in one piece: the small tensors
// are ranges of the large one's bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

// Where outputs lie in input 0, or inputs in output 0. The planner may place them there: the
// kernels of these ops copy nothing to where it is already.
struct ByteRanges {
  bool in_output = false;
  std::vector<std::int64_t> offsets =
      {};  // by output (or input), in bytes; empty: not in one piece
};

ByteRanges byte_ranges(const OpDef& op, const OpArgs& args);
ByteRanges byte_ranges(const Graph& graph, const Node& node);

}  // namespace trainscope
