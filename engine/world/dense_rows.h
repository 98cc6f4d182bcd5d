// Gradients and updates of rows alone, which one device can have, as those of all rows.
#pragma once

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// Undoes what the pass sparse_rows does: devices reduce gradients whose elements lie in the same
// places on all of them, and rows that each picks for itself do not.
void make_rows_dense(Graph& graph, const OpTable& ops);

}  // namespace trainscope
