// Skyline: the lowest segment of what is placed so far gets the first box, in some order, that lies
// wholly in it; a segment that no box fits is raised to its lower neighbour. Training steps meet
// the bound this way: with the longest lifetimes first, those that are nested in time are stacked.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "memplan/at.h"
#include "memplan/place/contained.h"
#include "memplan/place/live_profile.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

using Key = std::array<double, 3>;  // larger goes first

std::vector<int32_t> rank_by(const std::vector<Key>& keys) {
  std::vector<int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  std::vector<int32_t> rank(keys.size());
  for (size_t i = 0; i < order.size(); ++i) {
    rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  return rank;
}

// The heights of all slots, as segments: neighbours never have the same height.
class Skyline {
 public:
  Skyline(const Task& task, const std::vector<int32_t>& rank)
      : task_(task),
        waiting_(task, rank),
        offsets_(task.boxes.size(), 0),
        segment_from_(at(task.slot_count)),
        begin_of_(at(task.slot_count) + 1, 0) {
    set(0, {.end_slot = task.slot_count, .height_bytes = task.base_bytes});
    lowest_.push({task.base_bytes, 0});
  }

  Placement run(const Limits& limits) {
    for (size_t steps = 0; left_ > 0; ++steps) {
      if (limits.give_up(steps, highest_bytes_)) return {};
      const auto [height, slot] = lowest_.top();
      lowest_.pop();
      const Segment segment = segment_from_[at(slot)];
      if (segment.end_slot == kNoSegment || segment.height_bytes != height) continue;  // is gone
      const int32_t box = waiting_.take_first(slot, segment.end_slot);
      if (box < 0) {
        raise(slot);
      } else {
        put(at(box), slot);
      }
    }
    return std::move(offsets_);
  }

 private:
  static constexpr int32_t kNoSegment = 0;
  struct Segment {
    int32_t end_slot = kNoSegment;
    int64_t height_bytes = 0;
  };

  void set(int32_t slot, const Segment& segment) {
    segment_from_[at(slot)] = segment;
    begin_of_[at(segment.end_slot)] = slot;
  }

  void put(size_t index, int32_t slot) {
    const Box& box = task_.boxes[index];
    const Segment old = std::exchange(segment_from_[at(slot)], {});
    const int64_t offset = clear_offset(box, old.height_bytes);
    offsets_[index] = offset;
    --left_;
    highest_bytes_ = std::max(highest_bytes_, offset + box.size_bytes);
    if (slot < box.first_slot) {
      set(slot, {box.first_slot, old.height_bytes});
      lowest_.push({old.height_bytes, slot});
    }
    if (box.end_slot < old.end_slot) {
      set(box.end_slot, {old.end_slot, old.height_bytes});
      lowest_.push({old.height_bytes, box.end_slot});
    }
    set(box.first_slot, {box.end_slot, offset + box.size_bytes});
    join(box.first_slot);
  }

  // Up to the lower neighbour: nothing that is left lies wholly in it.
  void raise(int32_t slot) {
    Segment& segment = segment_from_[at(slot)];
    int64_t height = std::numeric_limits<int64_t>::max();
    if (slot > 0) height = segment_from_[at(begin_of_[at(slot)])].height_bytes;
    if (segment.end_slot < task_.slot_count) {
      height = std::min(height, segment_from_[at(segment.end_slot)].height_bytes);
    }
    segment.height_bytes = height;
    join(slot);
  }

  // Makes one segment of neighbours of one height, and lists it.
  void join(int32_t slot) {
    const Segment segment = segment_from_[at(slot)];
    int32_t begin = slot;
    int32_t end = segment.end_slot;
    if (end < task_.slot_count) {
      Segment& next = segment_from_[at(end)];
      if (next.height_bytes == segment.height_bytes) end = std::exchange(next, {}).end_slot;
    }
    if (slot > 0) {
      const int32_t before = begin_of_[at(slot)];
      if (segment_from_[at(before)].height_bytes == segment.height_bytes) {
        segment_from_[at(slot)] = {};
        begin = before;
      }
    }
    set(begin, {end, segment.height_bytes});
    lowest_.push({segment.height_bytes, begin});
  }

  // The lowest address at or above `from` that is aligned and clear of the obstacles.
  int64_t clear_offset(const Box& box, int64_t from) const {
    int64_t offset = align_up(from, box.alignment_bytes);
    for (bool moved = !task_.obstacles.empty(); moved;) {
      moved = false;
      for (const Obstacle& other : task_.obstacles) {
        const bool apart = other.end_slot <= box.first_slot || other.first_slot >= box.end_slot ||
                           other.end_bytes <= offset ||
                           other.begin_bytes >= offset + box.size_bytes;
        if (apart) continue;
        offset = align_up(other.end_bytes, box.alignment_bytes);
        moved = true;
      }
    }
    return offset;
  }

  const Task& task_;
  Contained waiting_;
  std::vector<int64_t> offsets_;
  size_t left_ = offsets_.size();
  int64_t highest_bytes_ = 0;
  std::vector<Segment> segment_from_;  // by first slot
  std::vector<int32_t> begin_of_;      // the first slot of the segment that ends at a slot
  // A segment; some are out of date.
  struct Low {
    int64_t height_bytes = 0;
    int32_t first_slot = 0;

    bool operator<(const Low& other) const {  // the lowest is on top of the queue
      if (height_bytes != other.height_bytes) return height_bytes > other.height_bytes;
      return first_slot > other.first_slot;
    }
  };
  std::priority_queue<Low> lowest_;
};

double duration_of(const Box& box) { return static_cast<double>(box.duration); }
double area_of(const Box& box) { return duration_of(box) * static_cast<double>(box.size_bytes); }

bool is_alive_at(const Box& box, int32_t slot) {
  return box.first_slot <= slot && slot < box.end_slot;
}

template <typename KeyOf>
Placement skyline(const Task& task, const Limits& limits, const KeyOf& key_of) {
  std::vector<Key> keys;
  keys.reserve(task.boxes.size());
  for (const Box& box : task.boxes) keys.push_back(key_of(box));
  return Skyline(task, rank_by(keys)).run(limits);
}

}  // namespace

Placement place_skyline_duration(const Task& task, const Limits& limits) {
  return skyline(task, limits, [](const Box& box) { return Key{duration_of(box), area_of(box)}; });
}

Placement place_skyline_total_duration(const Task& task, const Limits& limits) {
  const LiveProfile profile(task);
  return skyline(task, limits, [&](const Box& box) {
    const auto total = static_cast<double>(profile.max_bytes(box.first_slot, box.end_slot));
    return Key{total, duration_of(box), area_of(box)};
  });
}

Placement place_skyline_peak_end(const Task& task, const Limits& limits) {
  const int32_t peak = peak_slot(task);
  return skyline(task, limits, [&](const Box& box) {
    return Key{is_alive_at(box, peak) ? 1.0 : 0.0, static_cast<double>(box.end_slot),
               static_cast<double>(box.size_bytes)};
  });
}

Placement place_skyline_peak_start(const Task& task, const Limits& limits) {
  const int32_t peak = peak_slot(task);
  return skyline(task, limits, [&](const Box& box) {
    return Key{is_alive_at(box, peak) ? 1.0 : 0.0, -static_cast<double>(box.first_slot),
               static_cast<double>(box.size_bytes)};
  });
}

}  // namespace trainscope::memplan
