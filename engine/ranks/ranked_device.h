// The device of one rank: a device, and kernels that speak to the other ranks.
#pragma once

#include <memory>

#include "kernels/api/communicator.h"
#include "kernels/api/device.h"

namespace trainscope {

// `base` with the kernel of AllReduce over `ranks`, whose addresses are those of `base`. Kernels
// that are added to `base` later are not among its own.
DeviceHandle ranked_device(const DeviceHandle& base, std::shared_ptr<Communicator> ranks);

}  // namespace trainscope
