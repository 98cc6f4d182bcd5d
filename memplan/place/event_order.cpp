// Best fit in order of events: a free list walked through births and deaths, O(n log n).
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "memplan/place/live_profile.h"
#include "memplan/place/occupancy.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

enum class Side { kLow, kHigh };

// The free bytes of [base, ceiling); the ceiling rises when nothing fits.
class FreeList {
 public:
  FreeList(int64_t base, int64_t ceiling) : ceiling_(std::max(base, ceiling)) {
    insert(base, ceiling_);
  }

  // Takes the smallest gap that fits, at its low or high end.
  int64_t take(int64_t size, int64_t alignment, Side side) {
    for (auto gap = by_size_.lower_bound({size, 0}); gap != by_size_.end(); ++gap) {
      const int64_t begin = gap->second;
      const int64_t end = begin + gap->first;
      const int64_t low = align_up(begin, alignment);
      if (low + size > end) continue;
      const int64_t offset = side == Side::kLow ? low : end - size - (end - size) % alignment;
      take_at(offset, size);
      return offset;
    }
    return take_on_top(size, alignment);
  }

  void give(int64_t begin, int64_t size) {
    int64_t end = begin + size;
    const auto above = by_begin_.lower_bound(begin);
    if (above != by_begin_.begin()) {
      const auto [below_begin, below_end] = *std::prev(above);
      if (below_end == begin) {
        erase(below_begin, below_end);
        begin = below_begin;
      }
    }
    const auto next = by_begin_.find(end);
    if (next != by_begin_.end()) {
      const auto [next_begin, next_end] = *next;
      erase(next_begin, next_end);
      end = next_end;
    }
    insert(begin, end);
  }

  // Takes [begin, end), wherever it is free.
  void block(int64_t begin, int64_t end) {
    if (end > ceiling_) raise_ceiling(end);
    auto gap = by_begin_.upper_bound(begin);
    if (gap != by_begin_.begin()) --gap;
    while (gap != by_begin_.end() && gap->first < end) {
      const auto [gap_begin, gap_end] = *gap++;
      if (gap_end <= begin) continue;
      erase(gap_begin, gap_end);
      insert(gap_begin, begin);
      insert(end, gap_end);
    }
  }

 private:
  void insert(int64_t begin, int64_t end) {
    if (begin >= end) return;
    by_begin_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
  }
  void erase(int64_t begin, int64_t end) {
    by_begin_.erase(begin);
    by_size_.erase({end - begin, begin});
  }
  void raise_ceiling(int64_t ceiling) {
    const int64_t old = std::exchange(ceiling_, ceiling);
    give(old, ceiling - old);
  }
  void take_at(int64_t offset, int64_t size) {
    const auto [begin, end] = *std::prev(by_begin_.upper_bound(offset));
    erase(begin, end);
    insert(begin, offset);
    insert(offset + size, end);
  }
  int64_t take_on_top(int64_t size, int64_t alignment) {
    int64_t begin = ceiling_;
    if (!by_begin_.empty() && by_begin_.rbegin()->second == ceiling_) {
      begin = by_begin_.rbegin()->first;
    }
    const int64_t offset = align_up(begin, alignment);
    raise_ceiling(offset + size);
    take_at(offset, size);
    return offset;
  }

  int64_t ceiling_ = 0;
  std::map<int64_t, int64_t> by_begin_;            // begin -> end
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (size, begin)
};

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
    return std::tie(a.slot, a.birth, box_b.duration_steps, box_b.size_bytes, a.box) <
           std::tie(b.slot, b.birth, box_a.duration_steps, box_a.size_bytes, b.box);
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
