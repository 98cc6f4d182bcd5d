// Live bytes per slot: differences, prefix sums, then a sparse table of maxima.
#include "memplan/place/live_profile.h"

#include <algorithm>
#include <bit>

#include "memplan/at.h"

namespace trainscope::memplan {

std::vector<std::int64_t> live_bytes_per_slot(const Task& task) {
  std::vector<std::int64_t> live(at(task.slot_count) + 1, 0);
  for (const Box& box : task.boxes) {
    live[at(box.first_slot)] += box.size_bytes;
    live[at(box.end_slot)] -= box.size_bytes;
  }
  for (const Obstacle& obstacle : task.obstacles) {
    live[at(obstacle.first_slot)] += obstacle.end_bytes - obstacle.begin_bytes;
    live[at(obstacle.end_slot)] -= obstacle.end_bytes - obstacle.begin_bytes;
  }
  for (std::size_t slot = 1; slot < live.size(); ++slot) live[slot] += live[slot - 1];
  live.pop_back();
  return live;
}

std::int32_t peak_slot(const Task& task) {
  const std::vector<std::int64_t> live = live_bytes_per_slot(task);
  return static_cast<std::int32_t>(std::max_element(live.begin(), live.end()) - live.begin());
}

LiveProfile::LiveProfile(const Task& task) {
  maxima_.push_back(live_bytes_per_slot(task));
  for (std::size_t step = 1; 2 * step <= at(task.slot_count); step *= 2) {
    const std::vector<std::int64_t>& half = maxima_.back();
    std::vector<std::int64_t> whole(half.size() - step);
    for (std::size_t slot = 0; slot < whole.size(); ++slot) {
      whole[slot] = std::max(half[slot], half[slot + step]);
    }
    maxima_.push_back(std::move(whole));
  }
}

std::int64_t LiveProfile::max_bytes(std::int32_t first_slot, std::int32_t end_slot) const {
  const std::size_t length = at(end_slot - first_slot);
  const std::size_t level = static_cast<std::size_t>(std::bit_width(length / 2));  // floor(log2)
  const std::vector<std::int64_t>& maxima = maxima_[level];
  return std::max(maxima[at(first_slot)], maxima[at(end_slot) - (std::size_t{1} << level)]);
}

}  // namespace trainscope::memplan
