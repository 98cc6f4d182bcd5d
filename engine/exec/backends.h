// The devices that there are. The only place that knows the back ends.
#pragma once

#include <span>
#include <string_view>

#include "kernels/api/device.h"
#include "kernels/api/machine.h"

namespace trainscope {

// The rows of backends.def, in their order.
std::span<const std::string_view> back_end_names();
// The device of a back end, made once. Throws kUsage, with the nearest name, where there is none of
// this name.
DeviceHandle device_of(std::string_view back_end);

// This machine's processor.
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
