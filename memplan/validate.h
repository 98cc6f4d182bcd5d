// Checks a placement against its problem; shares no code with the placers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "memplan/problem.h"
#include "memplan/solution.h"

namespace trainscope::memplan {

enum class ViolationKind {
  kWrongCount,     // not one offset per buffer; nothing else is checked then
  kNegative,       // offset below zero
  kMisaligned,     // offset not a multiple of the buffer's alignment
  kMoved,          // a buffer with a fixed offset is elsewhere
  kAboveHeight,    // a buffer ends above the height stated
  kOverlap,        // two buffers share a byte at one time
  kAboveCapacity,  // the height is above the problem's capacity
  kWrongBound,     // bound above height, or `proven` does not say whether they are equal
};

struct Violation {
  ViolationKind kind = ViolationKind::kOverlap;
  std::size_t buffer = 0;  // index in Problem::buffers, where one buffer is to blame
  std::size_t other = 0;   // the second buffer of an overlap
  std::string message = {};
};

// Empty when the placement is valid. Of overlaps, each buffer is blamed at most once, so the list
// is never longer than a few entries per buffer. O(n log n).
[[nodiscard]] std::vector<Violation> validate(const Problem& problem, const Solution& solution);

}  // namespace trainscope::memplan
