// The processor as a device: its streams do their work at once, in the order in which they get it.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/api/back_end.h"

namespace trainscope::cpu {

// A device of this machine's processor, with the kernels of families.def; there is one, number 0.
MadeDevice make_device(int number);
// The hosts' own: addresses of this device are theirs.
MadeChannel make_channel(Device& device, std::shared_ptr<Communicator> hosts);
// One more kernel of that device, preferred to those that it has: of a plugin. Nothing may run on
// the device meanwhile.
void add_kernel(std::string_view op, DType dtype, const Kernel& kernel);

}  // namespace trainscope::cpu
