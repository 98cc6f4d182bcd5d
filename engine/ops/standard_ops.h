// The table of every op the engine knows.
#pragma once

#include "engine/ir/op_def.h"

namespace trainscope {

OpTable standard_ops();

}  // namespace trainscope
