// The processor as a device: its streams do their work at once, in the order in which they get it.
#pragma once

#include "kernels/api/back_end.h"

namespace trainscope::cpu {

// A device of this machine's processor, with the kernels of families.def; there is one, number 0.
MadeDevice make_device(int number);

}  // namespace trainscope::cpu
