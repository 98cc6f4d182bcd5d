// Best fit in order of events: a free list walked through births and deaths, O(n log n).
#include <algorithm>
#include <tuple>

#include "memplan/place/free_list.h"
#include "memplan/place/live_profile.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

// The boxes as this walk meets them; backwards, births and deaths change places.
struct Event {
  std::int32_t slot = 0;
  bool birth = false;
  size_t box = 0;
};

enum class Direction { kForward, kBackward };

std::vector<Event> events_of(const Task& task, Direction direction) {
  std::vector<Event> events;
  events.reserve(2 * task.boxes.size());
  const bool forward = direction == Direction::kForward;
  for (size_t i = 0; i < task.boxes.size(); ++i) {
    const Box& box = task.boxes[i];
    events.push_back({.slot = forward ? box.first_slot : -box.end_slot, .birth = true, .box = i});
    events.push_back({.slot = forward ? box.end_slot : -box.first_slot, .birth = false, .box = i});
  }
  const auto before = [&](const Event& a, const Event& b) {
    const Box& box_a = task.boxes[a.box];
    const Box& box_b = task.boxes[b.box];
    // Deaths first; of equal births the long-lived and large first, since they are hardest to fit.
    return std::tie(a.slot, a.birth, box_b.duration, box_b.size_bytes, a.box) <
           std::tie(b.slot, b.birth, box_a.duration, box_a.size_bytes, b.box);
  };
  std::sort(events.begin(), events.end(), before);
  return events;
}

Placement best_fit(const Task& task, const Limits& limits, Direction direction) {
  FreeList free_bytes(task.base_bytes, task.bound_bytes);
  // An obstacle is blocked all the time: this placer is for problems with few of them.
  for (const Obstacle& obstacle : task.obstacles) {
    free_bytes.block(obstacle.begin_bytes, obstacle.end_bytes);
  }
  const std::int32_t peak = peak_slot(task);
  std::vector<int64_t> offsets(task.boxes.size(), 0);
  int64_t height_bytes = 0;
  size_t done = 0;
  for (const Event& event : events_of(task, direction)) {
    const Box& box = task.boxes[event.box];
    if (!event.birth) {
      free_bytes.give(offsets[event.box], box.size_bytes);
      continue;
    }
    if (limits.give_up(done++, height_bytes)) return {};
    const bool at_peak = box.first_slot <= peak && peak < box.end_slot;
    const Side side = at_peak ? Side::kLow : Side::kHigh;
    offsets[event.box] = free_bytes.take(box.size_bytes, box.alignment_bytes, side);
    height_bytes = std::max(height_bytes, offsets[event.box] + box.size_bytes);
  }
  return offsets;
}

}  // namespace

Placement place_event_order(const Task& task, const Limits& limits) {
  return best_fit(task, limits, Direction::kForward);
}

Placement place_event_order_reversed(const Task& task, const Limits& limits) {
  return best_fit(task, limits, Direction::kBackward);
}

}  // namespace trainscope::memplan
