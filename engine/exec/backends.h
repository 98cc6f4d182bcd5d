// The kernels of each device. The only place that knows the back ends.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope {

// Kernels for this machine's CPU, filled once.
const KernelTable& cpu_kernels();

}  // namespace trainscope
