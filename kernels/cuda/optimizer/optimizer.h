// The kernels of optimizer steps, by file.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_optimizer(KernelTable& table);
void add_lamb(KernelTable& table);
void add_gradient_norm(KernelTable& table);

}  // namespace trainscope::cuda
