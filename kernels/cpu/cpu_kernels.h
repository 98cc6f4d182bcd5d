// The table of every CPU kernel.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

KernelTable cpu_kernels();

}  // namespace trainscope::cpu
