// Repairs a placement where it is too high: the exact search on a window of time, the rest stays.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/exact/decide.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {

// Moves boxes so that fewer of them end above `target_bytes`. Returns the effort spent, in visits.
std::uint64_t repair_windows(const Task& task, std::int64_t target_bytes, const Effort& effort,
                             std::vector<std::int64_t>& offsets);

}  // namespace trainscope::memplan
