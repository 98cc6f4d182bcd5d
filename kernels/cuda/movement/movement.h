// The parts of the movement, scatter and index families.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_transpose(KernelTable& table);   // transpose.cu
void add_regions(KernelTable& table);     // movement_regions.cu
void add_places(KernelTable& table);      // places.cu, of the family scatter
void add_sums_by_id(KernelTable& table);  // sum_rows_by_id.cu, of the family index

}  // namespace trainscope::cuda
