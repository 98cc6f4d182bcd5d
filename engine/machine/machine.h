// The machine that plans weigh time with: built in, or measured (`doctor --roofs`) and read from a
// file (--machine; machine_file.h).
#pragma once

#include "kernels/api/machine.h"  // IWYU pragma: export

namespace trainscope {

// Two cores of a server, as what nobody measured: it does not know caches, nor dtypes apart.
const Machine& default_machine();

}  // namespace trainscope
