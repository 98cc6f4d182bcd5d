// Slice, Split and Concat where they take out or put in elements in one piece: the small tensors
// are ranges of the large one's bytes.
#pragma once

#include "engine/ir/op_def.h"

namespace trainscope {

// Rules for rows. Without offsets where the op takes or puts nothing in one piece.
ByteRanges slice_ranges(const OpDef& op, const OpArgs& args);
ByteRanges concat_ranges(const OpDef& op, const OpArgs& args);
ByteRanges split_ranges(const OpDef& op, const OpArgs& args);

// The answer of the op's rule; without offsets where it has none.
ByteRanges byte_ranges(const OpDef& op, const OpArgs& args);
ByteRanges byte_ranges(const Graph& graph, const Node& node);

}  // namespace trainscope
