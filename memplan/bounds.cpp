// The live-bytes bound, by one sweep over births and deaths.
#include "memplan/bounds.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

// The most bytes alive at one of the times [first, first + count).
int64_t most_by_time(const Problem& problem, int64_t first, size_t count) {
  std::vector<int64_t> change(count + 1, 0);
  for (const Buffer& buffer : problem.buffers) {
    const int64_t bytes = occupied_bytes(problem, buffer);
    change[static_cast<size_t>(buffer.lower - first)] += bytes;
    change[static_cast<size_t>(buffer.upper - first)] -= bytes;
  }
  int64_t live_bytes = 0;
  int64_t most_bytes = 0;
  for (const int64_t bytes : change) {
    live_bytes += bytes;
    most_bytes = std::max(most_bytes, live_bytes);
  }
  return most_bytes;
}

// The same where there are many more times than buffers.
int64_t most_by_event(const Problem& problem) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // time, bytes; deaths sort first
  changes.reserve(2 * problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    const int64_t bytes = occupied_bytes(problem, buffer);
    changes.emplace_back(buffer.lower, bytes);
    changes.emplace_back(buffer.upper, -bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t live_bytes = 0;
  int64_t most_bytes = 0;
  for (const auto& [time, bytes] : changes) {
    live_bytes += bytes;
    most_bytes = std::max(most_bytes, live_bytes);
  }
  return most_bytes;
}

}  // namespace

int64_t lower_bound_bytes(const Problem& problem) {
  if (problem.buffers.empty()) return 0;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  int64_t fixed_end_bytes = 0;
  for (const Buffer& buffer : problem.buffers) {
    first = std::min(first, buffer.lower);
    end = std::max(end, buffer.upper);
    if (buffer.fixed_offset) {
      fixed_end_bytes =
          std::max(fixed_end_bytes, *buffer.fixed_offset + occupied_bytes(problem, buffer));
    }
  }
  constexpr int64_t kTimesPerBuffer = 8;  // so many cost no more than sorting the events
  const auto buffers = static_cast<int64_t>(problem.buffers.size());
  const bool dense = end - first <= kTimesPerBuffer * buffers;
  return std::max(fixed_end_bytes,
                  dense ? most_by_time(problem, first, static_cast<size_t>(end - first))
                        : most_by_event(problem));
}

}  // namespace trainscope::memplan
