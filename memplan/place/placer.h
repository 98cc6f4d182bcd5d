// What a placer sees (boxes in time and space) and must return; placers.def lists them all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "memplan/deadline.h"

namespace trainscope::memplan {

// A buffer within a task. Time is counted in slots, the distinct births of the task: two boxes
// are alive together exactly when their slot ranges meet.
struct Box {
  std::int32_t first_slot = 0;
  std::int32_t end_slot = 0;
  std::int64_t duration = 0;
  std::int64_t size_bytes = 0;  // rounded up to the problem's alignment, never 0
  std::int64_t alignment_bytes = 1;
};

// Bytes that are taken already, by a buffer with a fixed offset.
struct Obstacle {
  std::int32_t first_slot = 0;
  std::int32_t end_slot = 0;
  std::int64_t begin_bytes = 0;
  std::int64_t end_bytes = 0;
};

// Boxes in a section of time, to be placed on their own.
struct Task {
  std::vector<Box> boxes = {};
  std::vector<Obstacle> obstacles = {};
  std::int32_t slot_count = 0;
  std::int64_t base_bytes = 0;   // addresses below belong to buffers that live throughout
  std::int64_t bound_bytes = 0;  // no placement of the whole problem is lower
};

// When to stop early. Heights only grow while a placer runs, so one that has passed a height that
// is known to be reached cannot win any more; nor can one that comes after a placer whose placement
// is good enough. Giving up then never changes the outcome.
struct Limits {
  Deadline deadline = {};
  const std::atomic<std::int64_t>* height_to_beat = nullptr;
  const std::atomic<std::size_t>* reached_by = nullptr;  // a placer whose placement is good enough
  std::size_t placer = 0;                                // the number of this one
  // Work allowed, in byte ranges looked at: the same on any machine, unlike a time.
  std::uint64_t most_visits = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool hopeless(std::int64_t height_bytes) const {
    return (height_to_beat && height_bytes > height_to_beat->load(std::memory_order_relaxed)) ||
           (reached_by && reached_by->load(std::memory_order_relaxed) < placer);
  }
  // Called once per box; the clock is read rarely.
  [[nodiscard]] bool give_up(std::size_t boxes_done, std::int64_t height_bytes) const {
    return hopeless(height_bytes) || (boxes_done % 256 == 0 && deadline.expired());
  }
};

// An offset per box, or nothing when it gave up.
using Placement = std::optional<std::vector<std::int64_t>>;

struct Placer {
  std::string_view name = {};
  Placement (*place)(const Task&, const Limits&) = nullptr;
};

[[nodiscard]] constexpr std::int64_t align_up(std::int64_t bytes, std::int64_t alignment_bytes) {
  const std::int64_t past = bytes % alignment_bytes;
  return past == 0 ? bytes : bytes + (alignment_bytes - past);
}

#define PLACER(name) [[nodiscard]] Placement place_##name(const Task& task, const Limits& limits);
#include "memplan/placers.def"
#undef PLACER

}  // namespace trainscope::memplan
