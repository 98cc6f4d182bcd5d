// Failures of a device as errors.
#include "engine/exec/device_work.h"

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {

void check(const DeviceStatus& status) {
  if (status.done()) return;
  fail(code_of(status), "the device failed: {}", printable(status.message));
}

void copy_and_wait(Device& device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(device.copy(kComputeStream, static_cast<std::byte*>(to),
                    static_cast<const std::byte*>(from), bytes));
  check(device.synchronize(device.record(kComputeStream)));
}

}  // namespace trainscope
