// A height below which no placement of a placement problem can be.
#pragma once

#include <cstdint>

#include "memplan/problem.h"

namespace trainscope::memplan {

// The larger of: the most bytes alive at one time, and the highest end of a fixed buffer.
[[nodiscard]] std::int64_t lower_bound_bytes(const Problem& problem);

}  // namespace trainscope::memplan
