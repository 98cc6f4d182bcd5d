// Bodies: graphs that one call of a program runs.
#pragma once

#include "engine/plan/lower.h"
#include "engine/plan/program.h"

namespace trainscope {

// The body as a program of its own, with the kernels that the outer program's options allow. What
// its inputs hold stays there throughout a trip. Errors are those of lower(), and kBadInput where
// an output that is neither carried nor stacked is one of the inputs, or a view of one.
CallBody lowered_body(OpBody body, const DeviceHandle& device, const LowerOptions& options);

}  // namespace trainscope
