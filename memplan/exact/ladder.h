// The lowest placement of a task, found and proven by asking the exact search for height after
// height.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memplan/exact/decide.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {

struct Interval {
  std::int64_t lower_bytes = 0;   // no placement of the task is lower
  std::int64_t height_bytes = 0;  // a placement of this height is known
};

struct Improved {
  std::optional<std::vector<std::int64_t>> offsets =
      {};                    // per box of the task, if lower than known
  Interval interval = {};    // what is known now
  std::uint64_t visits = 0;  // spent
};

// Narrows the interval until the height is at or below `target_bytes`, the lower bound meets it, or
// the effort is spent.
[[nodiscard]] Improved lower_exactly(const Task& task, const Interval& known,
                                     std::int64_t target_bytes, const Effort& effort);

}  // namespace trainscope::memplan
