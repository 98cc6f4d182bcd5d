// Where a NaN came from, for people and as facts.
#pragma once

#include "cli/command.h"
#include "engine/run/numerics/bad_origin.h"

namespace trainscope {

Outcome print(const BadOrigin& origin);

}  // namespace trainscope
