// Work of a device, with its failures as errors.
#pragma once

#include <cstddef>

#include "kernels/api/device.h"

namespace trainscope {

// Throws what the status's code means, with its message, when the work failed.
void check(const DeviceStatus& status);

// Copies between the host's own memory and the device's, after all work that the compute stream has
// been given, and waits for the copy.
void copy_and_wait(Device& device, void* to, const void* from, std::size_t bytes);

}  // namespace trainscope
