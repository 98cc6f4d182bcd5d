// What an Lstm keeps of every step for its gradient.
#pragma once

#include <cstdint>

namespace trainscope::cuda {

// Blocks of H units of a row of it.
enum LstmBlock : std::int64_t { kI, kO, kF, kG, kCell };

}  // namespace trainscope::cuda
