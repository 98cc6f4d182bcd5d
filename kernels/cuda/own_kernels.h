// The CUDA kernels that are written here, as against those of NVIDIA's libraries.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Of all families of families.def. Compiled for the emulator they run on the host.
KernelTable own_kernels();

}  // namespace trainscope::cuda
