// The parts of the movement family.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_transpose(KernelTable& table);  // transpose.cpp
void add_regions(KernelTable& table);    // movement_regions.cpp

}  // namespace trainscope::cpu
