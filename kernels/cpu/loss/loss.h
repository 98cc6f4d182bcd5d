// The loss family's second file: losses that are means over elements.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_loss(KernelTable& table);
void add_element_losses(KernelTable& table);  // part of add_loss

}  // namespace trainscope::cpu
