// The device of one rank: a device, and kernels that speak to the other ranks.
#pragma once

#include <memory>

#include "kernels/api/communicator.h"
#include "kernels/api/device.h"

namespace trainscope {

// `base` with one kernel of AllReduce, over `ranks`, whose addresses are those of `base`. Of the
// kernels that `base` has, those of AllReduce are not among its own: they know no other rank. Nor
// are kernels that are added to `base` later.
DeviceHandle ranked_device(const DeviceHandle& base, std::shared_ptr<Communicator> ranks);

}  // namespace trainscope
