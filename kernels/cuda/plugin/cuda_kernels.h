// The kernels of the CUDA back end.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// The libraries that they call are loaded before.
KernelTable cuda_kernels();

}  // namespace trainscope::cuda
