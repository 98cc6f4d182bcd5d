// The CPU back end.
#include "engine/exec/backends.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/roofs/roofs.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope {

DeviceHandle cpu_device() {
  static const DeviceHandle device = cpu::make_cpu_device();
  return device;
}

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
