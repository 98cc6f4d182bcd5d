// Gradients and updates of losses that alternate.
#pragma once

#include "engine/ir/graph.h"
#include "engine/passes/pass.h"

namespace trainscope {

// For each of options.alternation in its order: what its loss reads of parameters that are updated
// by then is computed again, its gradients by its own parameters and their update are appended to
// the backward phase. The graph's loss becomes the sum of the losses as they were computed. Throws
// kUsage for parameters that are not in one group, and for options that do not go together with it.
void append_alternation(Graph& graph, PassContext& context);

}  // namespace trainscope
