// The table of every op the engine knows, those of plugins too.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"

namespace trainscope {

// A table of one's own.
OpTable standard_ops();
// The one that programs are made with; what it has stays where it is when rows are added.
const OpTable& shared_ops();
// More rows of both, of plugins. Their names are new in every domain. No graph may be built
// meanwhile.
void add_ops(std::vector<OpDef> rows);

}  // namespace trainscope
