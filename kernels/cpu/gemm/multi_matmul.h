// MultiMatMul: several matmuls of one input.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_multi_matmul(KernelTable& table);

}  // namespace trainscope::cpu
