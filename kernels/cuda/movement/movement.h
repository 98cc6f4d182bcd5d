// The parts of the movement and scatter families.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_transpose(KernelTable& table);  // transpose.cu
void add_regions(KernelTable& table);    // movement_regions.cu
void add_places(KernelTable& table);     // places.cu, of the family scatter

}  // namespace trainscope::cuda
