// The devices that there are. The only place that knows the back ends.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/back_end.h"
#include "kernels/api/communicator.h"
#include "kernels/api/device.h"
#include "kernels/api/machine.h"

namespace trainscope {

// The rows of backends.def, in their order.
std::span<const std::string_view> back_end_names();
// Whether the text names a device: a back end, or one with a number behind it, "cuda:1".
bool names_device(std::string_view text);
// That device, made once. Throws kUsage, with the nearest name, where no back end has this name,
// and kNoDevice, with the reason, where the back end has no such device here.
DeviceHandle device_of(std::string_view name);
// Why the back end has no such device; empty where it has.
std::string why_no_device(std::string_view name);
// What a CUDA device is and runs with, and the files of its libraries, a line each; whatever of it
// is known where there is no device.
std::vector<std::string> cuda_description(std::string_view name);

// The channel between the ranks' devices, of which `device`, one of device_of(), is this process's,
// from that between their hosts. Every rank calls it. kNoDevice, with the reason, where there is
// none.
std::shared_ptr<Communicator> device_channel(const DeviceHandle& device,
                                             std::shared_ptr<Communicator> hosts);

// What records the device's own work, or why nothing does: of a device whose calls run on threads
// of the host these tell of them.
MadeTracer device_tracer(Device& device);

// This machine's processor.
DeviceHandle cpu_device();
// Its kernels, for what is computed without a program.
const KernelTable& cpu_kernels();
// One more of them, preferred to those that there are: of a plugin. No program may run meanwhile.
void add_cpu_kernel(std::string_view op, DType dtype, const Kernel& kernel);
// The instructions that they use: "AVX2" or "AVX-512".
std::string_view cpu_isa();
// Measures what it reaches; the machine's name is left empty.
Machine measure_cpu(const MeasureOptions& options);

// Makes sure that calls on so many threads find them; fails with kOutOfMemory when the system gives
// fewer.
void start_threads(Device& device, int threads);

}  // namespace trainscope
