// Stacked outputs of loops that nobody reads: what each trip had, where no gradient asks for it.
#pragma once

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {

// Leaves them out. Before a step is differentiated they are kept, because its gradients may read
// them.
void remove_unread_stacks(Rewriter& rewriter, PassContext& context);

}  // namespace trainscope
