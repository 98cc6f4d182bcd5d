// What a call computes and moves: by its op's definition, and by what its kernel says.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"
#include "engine/plan/program.h"

namespace trainscope {

// The call's inputs or outputs as a kernel's `prepare` sees them: without bytes, but for constants.
std::vector<TensorView> operand_views(const Graph& graph, const std::vector<Operand>& operands);
// That the call's kernel is chosen by.
DType dtype_of(const Call& call);
// Of a node's call what the op's row counts, of a batch tile its share; of sums of partials and
// copies by their operands.
Cost definition_of(const Program& program, const Call& call);
// What the call's kernel does, given `definition`, which it is where there is no kernel.
Cost kernel_cost_of(const Program& program, const Call& call, const Cost& definition);
// Bytes of its workspace that the call itself uses: of a batch tile, the tile's.
std::int64_t own_workspace_bytes(const Program& program, const Call& call);

}  // namespace trainscope
