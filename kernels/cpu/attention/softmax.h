// Softmax kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_softmax(KernelTable& table);

}  // namespace trainscope::cpu
