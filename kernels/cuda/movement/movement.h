// The parts of the movement family.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_transpose(KernelTable& table);  // transpose.cu
void add_regions(KernelTable& table);    // movement_regions.cu

}  // namespace trainscope::cuda
