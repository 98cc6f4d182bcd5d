// What a Gru keeps of every step for its gradient, and its weights.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/api/recurrent_layout.h"

namespace trainscope::cuda {

// Blocks of H units of a row of what is kept.
enum GruBlock : std::int64_t { kZ, kR, kH, kProduct };

// R [H, H] of a gate of direction d, behind which those of the next gates lie. `forward` are the
// inputs of Gru.
template <typename T>
const T* recurrence_of(std::span<const TensorView> forward, const RecurrentSizes& sizes,
                       std::int64_t d, std::int64_t gate) {
  return forward[kRecurrence].as<const T>() + (d * kGruGates + gate) * sizes.hidden * sizes.hidden;
}

}  // namespace trainscope::cuda
