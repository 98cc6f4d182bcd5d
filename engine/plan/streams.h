// Streams: transfers between memory spaces run beside kernels, and wait for one another where they
// touch the same bytes.
#pragma once

#include "engine/plan/program.h"

namespace trainscope {

// Puts calls that touch host memory on the transfer stream and finds the waits between the two: as
// few as order every two calls of different streams of which one writes what the other touches. A
// transfer that no kernel of its part of the step (forward and backward; update) comes before, or
// none waits for, stays on the compute stream: so a part is done when its kernels are.
void assign_streams(Program& program);

}  // namespace trainscope
