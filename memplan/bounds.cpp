// The live-bytes bound, by one sweep over births and deaths.
#include "memplan/bounds.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace trainscope::memplan {

std::int64_t lower_bound_bytes(const Problem& problem) {
  std::int64_t bound_bytes = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // step, bytes; deaths sort first
  changes.reserve(2 * problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    const std::int64_t bytes = occupied_bytes(problem, buffer);
    changes.emplace_back(buffer.lower, bytes);
    changes.emplace_back(buffer.upper, -bytes);
    if (buffer.fixed_offset) bound_bytes = std::max(bound_bytes, *buffer.fixed_offset + bytes);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t live_bytes = 0;
  for (const auto& [step, bytes] : changes) {
    live_bytes += bytes;
    bound_bytes = std::max(bound_bytes, live_bytes);
  }
  return bound_bytes;
}

}  // namespace trainscope::memplan
