// Measures the roofs of this machine: bytes per second of each cache and of memory, FLOP/s of each
// dtype, what calls and forks cost.
#pragma once

#include "kernels/api/machine.h"

namespace trainscope::cpu {

// Its `name` is empty. FLOP/s are those of our GEMM's tile on panels that stay in L1, in the dtypes
// that the processor has instructions for; it says why others have none. Takes the least of several
// rounds, so that what other programs take counts little.
Machine measure_machine(const MeasureOptions& options);

}  // namespace trainscope::cpu
