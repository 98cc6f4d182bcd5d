// Finds what is too high, and asks for a placement of ever more of its surroundings.
#include "memplan/exact/window.h"

#include <algorithm>
#include <numeric>

#include "memplan/exact/ladder.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint64_t;

// What one window may cost, per box in it: room for a few thousand choices, not for a proof.
constexpr uint64_t kVisitsPerBox = 4096;
// A search keeps what it knows of all pairs: larger windows would take seconds to set up.
constexpr size_t kMostMovable = 5000;
// More than one in so many of a task's boxes are the business of the search of the whole.
constexpr size_t kMostShare = 4;

struct Window {
  int32_t first_slot = 0;
  int32_t end_slot = 0;
};

class Repair {
 public:
  Repair(const Task& task, int64_t target_bytes, const Effort& effort,
         std::vector<int64_t>& offsets)
      : task_(task), target_bytes_(target_bytes), effort_(effort), offsets_(offsets) {}

  uint64_t run() {
    for (const Window& window : high_windows()) grow(window);
    return spent_;
  }

 private:
  bool spent() const { return spent_ >= effort_.visits || effort_.deadline.expired(); }
  int64_t end_of(size_t box) const { return offsets_[box] + task_.boxes[box].size_bytes; }

  // The lifetimes of the boxes above the target, joined where they meet.
  std::vector<Window> high_windows() const {
    std::vector<Window> lifetimes;
    for (size_t i = 0; i < task_.boxes.size(); ++i) {
      if (end_of(i) <= target_bytes_) continue;
      lifetimes.push_back({task_.boxes[i].first_slot, task_.boxes[i].end_slot});
    }
    std::sort(lifetimes.begin(), lifetimes.end(),
              [](const Window& a, const Window& b) { return a.first_slot < b.first_slot; });
    std::vector<Window> joined;
    for (const Window& lifetime : lifetimes) {
      if (joined.empty() || lifetime.first_slot >= joined.back().end_slot) {
        joined.push_back(lifetime);
      } else {
        joined.back().end_slot = std::max(joined.back().end_slot, lifetime.end_slot);
      }
    }
    return joined;
  }

  // Doubles what may move until the window is repaired or holds everything.
  void grow(Window window) {
    size_t movable_before = 0;
    while (!spent()) {
      const std::vector<size_t> movable = boxes_within(window);
      if (movable.size() > std::min(kMostMovable, task_.boxes.size() / kMostShare)) return;
      if (movable.size() > movable_before && repair(window, movable)) return;
      movable_before = std::max(movable_before, movable.size());
      if (window.first_slot == 0 && window.end_slot == task_.slot_count) return;
      const int32_t margin = std::max(4, (window.end_slot - window.first_slot) / 2);
      window.first_slot = std::max(0, window.first_slot - margin);
      window.end_slot = std::min(task_.slot_count, window.end_slot + margin);
    }
  }

  std::vector<size_t> boxes_within(const Window& window) const {
    std::vector<size_t> within;
    for (size_t i = 0; i < task_.boxes.size(); ++i) {
      const Box& box = task_.boxes[i];
      if (box.first_slot >= window.first_slot && box.end_slot <= window.end_slot) {
        within.push_back(i);
      }
    }
    return within;
  }

  bool repair(const Window& window, const std::vector<size_t>& movable) {
    int64_t height_bytes = 0;
    for (const size_t i : movable) height_bytes = std::max(height_bytes, end_of(i));
    if (height_bytes <= target_bytes_) return true;  // an earlier window went over this one
    Effort effort = effort_;
    effort.visits = std::min(kVisitsPerBox * movable.size(), effort_.visits - spent_);
    const Task task = cut_out(window, movable);
    const Improved improved = lower_exactly(
        task, {.lower_bytes = target_bytes_, .height_bytes = height_bytes}, target_bytes_, effort);
    spent_ += std::max<uint64_t>(improved.visits, 1);
    if (improved.offsets) {
      for (size_t i = 0; i < movable.size(); ++i) offsets_[movable[i]] = (*improved.offsets)[i];
    }
    return improved.interval.height_bytes <= target_bytes_;
  }

  // The window as a task of its own; boxes that are not wholly in it stay where they are.
  Task cut_out(const Window& window, const std::vector<size_t>& movable) const {
    Task task{.slot_count = window.end_slot - window.first_slot,
              .base_bytes = task_.base_bytes,
              .bound_bytes = task_.bound_bytes};
    const auto add_obstacle = [&](const Obstacle& obstacle) {
      const int32_t first = std::max(obstacle.first_slot, window.first_slot);
      const int32_t end = std::min(obstacle.end_slot, window.end_slot);
      if (first >= end) return;
      task.obstacles.push_back({.first_slot = first - window.first_slot,
                                .end_slot = end - window.first_slot,
                                .begin_bytes = obstacle.begin_bytes,
                                .end_bytes = obstacle.end_bytes});
    };
    for (const Obstacle& obstacle : task_.obstacles) add_obstacle(obstacle);
    size_t next = 0;
    for (size_t i = 0; i < task_.boxes.size(); ++i) {
      const Box& box = task_.boxes[i];
      if (next < movable.size() && movable[next] == i) {
        ++next;
        task.boxes.push_back(box);
        task.boxes.back().first_slot -= window.first_slot;
        task.boxes.back().end_slot -= window.first_slot;
      } else {
        add_obstacle({box.first_slot, box.end_slot, offsets_[i], end_of(i)});
      }
    }
    return task;
  }

  const Task& task_;
  int64_t target_bytes_ = 0;
  const Effort& effort_;
  std::vector<int64_t>& offsets_;
  uint64_t spent_ = 0;
};

}  // namespace

uint64_t repair_windows(const Task& task, int64_t target_bytes, const Effort& effort,
                        std::vector<int64_t>& offsets) {
  return Repair(task, target_bytes, effort, offsets).run();
}

}  // namespace trainscope::memplan
