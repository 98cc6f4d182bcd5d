// A device with another table of kernels.
#pragma once

#include <memory>

#include "kernels/api/device.h"

namespace trainscope {

// Everything is `base`'s but the table; `context` is what contexts of its kernels point into, if
// anything, and lives as long as the device.
DeviceHandle device_with_kernels(DeviceHandle base, KernelTable kernels,
                                 std::shared_ptr<const void> context = nullptr);

}  // namespace trainscope
