// Skyline: the lowest stretch of what is placed so far gets the first box, in some order, that lies
// wholly in it; a stretch that no box fits is raised to its lower neighbour. Training steps meet
// the bound this way: with the longest lives first, lives that are nested in time are stacked.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

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

// Neighbouring stretches of slots never have the same height.
class Skyline {
 public:
  Skyline(const Task& task, const std::vector<int32_t>& rank)
      : task_(task), waiting_(task, rank), offsets_(task.boxes.size(), 0) {
    set(0, {.end_slot = task.slot_count, .height_bytes = task.base_bytes});
  }

  Placement run(const Limits& limits) {
    for (size_t steps = 0; left_ > 0; ++steps) {
      if (limits.give_up(steps, highest_bytes_)) return {};
      const auto [height, slot] = lowest_.top();
      lowest_.pop();
      const auto found = stretches_.find(slot);
      if (found == stretches_.end() || found->second.height_bytes != height) continue;  // is gone
      const int32_t box = waiting_.take_first(slot, found->second.end_slot);
      if (box < 0) {
        raise(found);
      } else {
        put(static_cast<size_t>(box), found);
      }
    }
    return std::move(offsets_);
  }

 private:
  struct Stretch {
    int32_t end_slot = 0;
    int64_t height_bytes = 0;
  };
  using Stretches = std::map<int32_t, Stretch>;  // by first slot

  void set(int32_t slot, const Stretch& stretch) {
    stretches_[slot] = stretch;
    lowest_.emplace(stretch.height_bytes, slot);
  }

  void put(size_t index, Stretches::iterator at) {
    const Box& box = task_.boxes[index];
    const int32_t slot = at->first;
    const Stretch old = at->second;
    const int64_t offset = clear_offset(box, old.height_bytes);
    offsets_[index] = offset;
    --left_;
    highest_bytes_ = std::max(highest_bytes_, offset + box.size_bytes);
    stretches_.erase(at);
    if (slot < box.first_slot) set(slot, {box.first_slot, old.height_bytes});
    if (box.end_slot < old.end_slot) set(box.end_slot, {old.end_slot, old.height_bytes});
    set(box.first_slot, {box.end_slot, offset + box.size_bytes});
    join(stretches_.find(box.first_slot));
  }

  // Up to the lower neighbour: nothing that is left lies wholly in it.
  void raise(Stretches::iterator at) {
    int64_t height = std::numeric_limits<int64_t>::max();
    if (at != stretches_.begin()) height = std::prev(at)->second.height_bytes;
    const auto next = std::next(at);
    if (next != stretches_.end()) height = std::min(height, next->second.height_bytes);
    at->second.height_bytes = height;
    join(at);
  }

  void join(Stretches::iterator at) {
    const auto next = std::next(at);
    if (next != stretches_.end() && next->second.height_bytes == at->second.height_bytes) {
      at->second.end_slot = next->second.end_slot;
      stretches_.erase(next);
    }
    if (at != stretches_.begin()) {
      const auto before = std::prev(at);
      if (before->second.height_bytes == at->second.height_bytes) {
        before->second.end_slot = at->second.end_slot;
        stretches_.erase(at);
        at = before;
      }
    }
    lowest_.emplace(at->second.height_bytes, at->first);
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
  Stretches stretches_;
  using Low = std::pair<int64_t, int32_t>;  // height, first slot; some are out of date
  std::priority_queue<Low, std::vector<Low>, std::greater<>> lowest_;
};

double duration_of(const Box& box) { return static_cast<double>(box.duration_steps); }
double area_of(const Box& box) { return duration_of(box) * static_cast<double>(box.size_bytes); }

}  // namespace

Placement place_skyline_duration(const Task& task, const Limits& limits) {
  std::vector<Key> keys;
  for (const Box& box : task.boxes) keys.push_back({duration_of(box), area_of(box)});
  return Skyline(task, rank_by(keys)).run(limits);
}

Placement place_skyline_total_duration(const Task& task, const Limits& limits) {
  const LiveProfile profile(task);
  std::vector<Key> keys;
  for (const Box& box : task.boxes) {
    const auto total = static_cast<double>(profile.max_bytes(box.first_slot, box.end_slot));
    keys.push_back({total, duration_of(box), area_of(box)});
  }
  return Skyline(task, rank_by(keys)).run(limits);
}

}  // namespace trainscope::memplan
