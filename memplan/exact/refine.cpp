// Windows first where there are many boxes: a search of the whole takes time for each of them.
#include "memplan/exact/refine.h"

#include <algorithm>

#include "memplan/exact/window.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

// Below, the whole is searched at once; above the second, only windows are.
constexpr size_t kFewBoxes = 300;
constexpr size_t kManyBoxes = 5000;

int64_t height_of(const Task& task, const std::vector<int64_t>& offsets) {
  int64_t height_bytes = task.base_bytes;
  for (size_t i = 0; i < offsets.size(); ++i) {
    height_bytes = std::max(height_bytes, offsets[i] + task.boxes[i].size_bytes);
  }
  return height_bytes;
}

void spend(Effort& effort, std::uint64_t visits) {
  effort.visits -= std::min(effort.visits, visits);
}

}  // namespace

Interval refine(const Task& task, const Interval& known, int64_t target_bytes, Effort& effort,
                std::vector<int64_t>& offsets) {
  Interval interval = known;
  if (task.boxes.size() > kFewBoxes) {
    spend(effort, repair_windows(task, target_bytes, effort, offsets));
    interval.height_bytes = height_of(task, offsets);
  }
  if (interval.height_bytes <= target_bytes || task.boxes.size() > kManyBoxes) return interval;
  Improved improved = lower_exactly(task, interval, target_bytes, effort);
  spend(effort, improved.visits);
  if (improved.offsets) offsets = std::move(*improved.offsets);
  return improved.interval;
}

}  // namespace trainscope::memplan
