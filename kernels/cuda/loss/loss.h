// The kernels of losses, by file.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_loss(KernelTable& table);
void add_element_losses(KernelTable& table);

}  // namespace trainscope::cuda
