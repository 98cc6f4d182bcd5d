// Devices by the names of their back ends, and what only the CPU has.
#include "engine/exec/backends.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "kernels/cpu/roofs/roofs.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope {

#define BACK_END(name)        \
  namespace name {            \
  DeviceHandle make_device(); \
  }
#include "engine/exec/backends.def"
#undef BACK_END

namespace {

constexpr std::string_view kNames[] = {
#define BACK_END(name) #name,
#include "engine/exec/backends.def"
#undef BACK_END
};

}  // namespace

std::span<const std::string_view> back_end_names() { return kNames; }

namespace {

DeviceHandle checked(DeviceHandle device) {
  require(device->facts().version == kDeviceVersion, ErrorCode::kNoDevice,
          "the back end '{}' was built for version {} of the device interface, this program has {}",
          device->facts().name, device->facts().version, kDeviceVersion);
  return device;
}

}  // namespace

DeviceHandle device_of(std::string_view back_end) {
#define BACK_END(name)                                               \
  if (back_end == #name) {                                           \
    static const DeviceHandle device = checked(name::make_device()); \
    return device;                                                   \
  }
#include "engine/exec/backends.def"
#undef BACK_END
  throw Error(ErrorCode::kUsage, fmt::format("there is no back end '{}'", printable(back_end)))
      .hint(nearest_hint(back_end, kNames));
}

DeviceHandle cpu_device() { return device_of("cpu"); }

const KernelTable& cpu_kernels() { return cpu_device()->kernels(); }

std::string_view cpu_isa() { return cpu::has_avx512() ? "AVX-512" : "AVX2"; }

Machine measure_cpu(const MeasureOptions& options) {
  start_threads(*cpu_device(), options.threads);
  return cpu::measure_machine(options);
}

void start_threads(Device& device, int threads) {
  const DeviceStatus status = device.start_threads(threads);
  if (status.done()) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("cannot start {} threads: {}", threads, status.message))
      .hint("--threads 1, or a higher limit of threads (`ulimit -u`, or the cgroup's pids.max)");
}

}  // namespace trainscope
