// Passes that turn a forward graph with a loss into a training step.
#pragma once

#include "engine/passes/pass.h"

namespace trainscope {

Pass differentiate_pass();
Pass accumulate_pass();
Pass optimizer_step_pass();

}  // namespace trainscope
