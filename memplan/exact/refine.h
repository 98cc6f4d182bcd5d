// Lowers placements that the placers left above the target: by windows, then by the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/exact/decide.h"
#include "memplan/exact/ladder.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {

// Lowers the placement `offsets` of the task, and returns what is known then about its height. The
// lower bound rises above `known.lower_bytes` only by proof.
Interval refine(const Task& task, const Interval& known, std::int64_t target_bytes, Effort& effort,
                std::vector<std::int64_t>& offsets);

}  // namespace trainscope::memplan
