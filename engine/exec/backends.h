// The kernels of each device. The only place that knows the back ends.
#pragma once

#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope {

// Kernels for this machine's CPU, filled once.
const KernelTable& cpu_kernels();
// The instructions that they use: "AVX2" or "AVX-512".
std::string_view cpu_isa();

}  // namespace trainscope
