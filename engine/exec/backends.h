// The devices that there are. The only place that knows the back ends.
#pragma once

#include <string_view>

#include "kernels/api/device.h"
#include "kernels/api/machine.h"

namespace trainscope {

// This machine's processor, made once.
DeviceHandle cpu_device();
// Its kernels, for what is computed without a program.
const KernelTable& cpu_kernels();
// The instructions that they use: "AVX2" or "AVX-512".
std::string_view cpu_isa();
// Measures what it reaches; the machine's name is left empty.
Machine measure_cpu(const MeasureOptions& options);

// Makes sure that calls on so many threads find them; fails with kOutOfMemory when the system gives
// fewer.
void start_threads(Device& device, int threads);

}  // namespace trainscope
