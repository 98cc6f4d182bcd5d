// The kernels of each device. The only place that knows the back ends.
#pragma once

#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope {

// Kernels for this machine's CPU, filled once.
const KernelTable& cpu_kernels();
// The instructions that they use: "AVX2" or "AVX-512".
std::string_view cpu_isa();

// Makes sure that loops of the calling thread find so many threads; fails with kOutOfMemory when
// the system gives fewer.
void start_cpu_threads(int threads);

}  // namespace trainscope
