// The processor as a device: its streams do their work at once, in the order in which they get it.
#pragma once

#include "kernels/api/device.h"

namespace trainscope::cpu {

// A device of this machine's processor, with the kernels of families.def.
DeviceHandle make_device();

}  // namespace trainscope::cpu
