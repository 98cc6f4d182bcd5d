// Buffers that live throughout go to the arena's bottom; the rest is cut where no buffer is alive.
#include "memplan/place/decompose.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "memplan/place/occupancy.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

struct Span {
  int64_t lower = std::numeric_limits<int64_t>::max();
  int64_t upper = 0;
};

Span whole_lifetime(const Problem& problem) {
  Span whole;
  for (const Buffer& buffer : problem.buffers) {
    whole.lower = std::min(whole.lower, buffer.lower);
    whole.upper = std::max(whole.upper, buffer.upper);
  }
  return whole;
}

// Buffers by role, as indices into the problem.
struct Roles {
  std::vector<size_t> persistent = {};  // alive throughout
  std::vector<size_t> fixed = {};       // an offset was given, and not persistent
  std::vector<size_t> movable = {};     // what the placers are for, by birth
};

// Ties by index. Keys beside their indices: far fewer cache misses than looking them up.
void sort_by_birth(const Problem& problem, std::vector<size_t>& buffers) {
  std::vector<std::pair<int64_t, size_t>> births;
  births.reserve(buffers.size());
  for (const size_t i : buffers) births.emplace_back(problem.buffers[i].lower, i);
  std::sort(births.begin(), births.end());
  for (size_t i = 0; i < births.size(); ++i) buffers[i] = births[i].second;
}

Roles sort_by_role(const Problem& problem) {
  const Span whole = whole_lifetime(problem);
  Roles roles;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size_bytes == 0) continue;
    if (buffer.lower == whole.lower && buffer.upper == whole.upper) {
      roles.persistent.push_back(i);
    } else {
      (buffer.fixed_offset ? roles.fixed : roles.movable).push_back(i);
    }
  }
  sort_by_birth(problem, roles.movable);
  return roles;
}

// Stacks the persistent buffers around the fixed ones and returns the bytes they take.
RangeSet stack_persistent(const Problem& problem, const Roles& roles,
                          std::vector<int64_t>& offsets) {
  const auto range_of = [&](size_t i) {
    return std::pair(offsets[i], offsets[i] + occupied_bytes(problem, problem.buffers[i]));
  };
  RangeSet taken;
  RangeSet persistent;
  for (const size_t i : roles.fixed) taken.add(range_of(i).first, range_of(i).second, 1);
  std::vector<size_t> order = roles.persistent;
  // The fixed ones first, then the strictest alignment, which leaves no padding between.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Buffer& first = problem.buffers[a];
    const Buffer& second = problem.buffers[b];
    if (first.fixed_offset.has_value() != second.fixed_offset.has_value()) {
      return first.fixed_offset.has_value();
    }
    return offset_alignment_bytes(problem, first) > offset_alignment_bytes(problem, second);
  });
  for (const size_t i : order) {
    const Buffer& buffer = problem.buffers[i];
    if (!buffer.fixed_offset) {
      taken.raise_to_fit(offsets[i], occupied_bytes(problem, buffer),
                         offset_alignment_bytes(problem, buffer));
    }
    taken.add(range_of(i).first, range_of(i).second, 1);
    persistent.add(range_of(i).first, range_of(i).second, 1);
  }
  return persistent;
}

// The sections of `movable`, sorted by birth, between which nothing movable is alive.
std::vector<std::vector<size_t>> cut_in_time(const Problem& problem,
                                             const std::vector<size_t>& movable) {
  std::vector<std::vector<size_t>> sections;
  int64_t alive_until = -1;
  for (const size_t i : movable) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.lower >= alive_until) sections.emplace_back();
    sections.back().push_back(i);
    alive_until = std::max(alive_until, buffer.upper);
  }
  return sections;
}

// Without obstacles and with one alignment, the strips of the arena that persistent buffers take
// can be moved below all others without changing anything else.
bool can_stack_freely(const Problem& problem, const Roles& roles) {
  const auto movable = [&](size_t i) { return !problem.buffers[i].fixed_offset; };
  const auto strict = [&](const Buffer& buffer) {
    return offset_alignment_bytes(problem, buffer) > problem.alignment_bytes;
  };
  if (std::none_of(roles.persistent.begin(), roles.persistent.end(), movable)) return true;
  return roles.fixed.empty() &&
         std::all_of(roles.persistent.begin(), roles.persistent.end(), movable) &&
         std::none_of(problem.buffers.begin(), problem.buffers.end(), strict);
}

class SectionBuilder {
 public:
  SectionBuilder(const Problem& problem, std::vector<size_t> buffers)
      : problem_(problem), buffers_(std::move(buffers)) {
    lifetime_.lower = problem.buffers[buffers_.front()].lower;
    for (const size_t i : buffers_) {
      births_.push_back(problem.buffers[i].lower);
      lifetime_.upper = std::max(lifetime_.upper, problem.buffers[i].upper);
    }
  }

  // Takes [begin, end) away from the section if the obstacle is alive in it.
  void add_obstacle(size_t index, int64_t offset) {
    const Buffer& buffer = problem_.buffers[index];
    if (buffer.upper <= lifetime_.lower || buffer.lower >= lifetime_.upper) return;
    obstacles_.emplace_back(index, offset);
    births_.push_back(std::max(buffer.lower, lifetime_.lower));
  }

  Section build(int64_t base_bytes, int64_t bound_bytes) {
    std::sort(births_.begin(), births_.end());
    births_.erase(std::unique(births_.begin(), births_.end()), births_.end());
    number_times();
    Section section{.task = {.slot_count = static_cast<std::int32_t>(births_.size()),
                             .base_bytes = base_bytes,
                             .bound_bytes = bound_bytes}};
    for (const size_t i : buffers_) {
      const Buffer& buffer = problem_.buffers[i];
      section.task.boxes.push_back({.first_slot = slot_of(buffer.lower),
                                    .end_slot = slot_of(buffer.upper),
                                    .duration = buffer.upper - buffer.lower,
                                    .size_bytes = occupied_bytes(problem_, buffer),
                                    .alignment_bytes = offset_alignment_bytes(problem_, buffer)});
    }
    for (const auto& [i, offset] : obstacles_) {
      const Buffer& buffer = problem_.buffers[i];
      section.task.obstacles.push_back(
          {.first_slot = slot_of(std::max(buffer.lower, lifetime_.lower)),
           .end_slot = slot_of(buffer.upper),
           .begin_bytes = offset,
           .end_bytes = offset + occupied_bytes(problem_, buffer)});
    }
    section.buffers = std::move(buffers_);
    return section;
  }

 private:
  // Lists the slot of each time, unless there are many more times than slots.
  void number_times() {
    constexpr int64_t kTimesPerSlot = 16;
    const auto slots = static_cast<int64_t>(births_.size());
    if (lifetime_.upper - lifetime_.lower > kTimesPerSlot * slots) return;
    std::int32_t slot = 0;
    for (int64_t time = lifetime_.lower; time <= lifetime_.upper; ++time) {
      while (slot < slots && births_[static_cast<size_t>(slot)] < time) ++slot;
      slot_of_time_.push_back(slot);
    }
  }

  // The first slot that begins at `time` or later.
  std::int32_t slot_of(int64_t time) const {
    const auto past = static_cast<size_t>(time - lifetime_.lower);
    if (past < slot_of_time_.size()) return slot_of_time_[past];
    return static_cast<std::int32_t>(std::lower_bound(births_.begin(), births_.end(), time) -
                                     births_.begin());
  }

  const Problem& problem_;
  std::vector<size_t> buffers_;
  std::vector<std::pair<size_t, int64_t>> obstacles_;  // buffer, offset
  std::vector<int64_t> births_;
  std::vector<std::int32_t> slot_of_time_;  // from lifetime_.lower on; empty where it would be long
  Span lifetime_;
};

}  // namespace

Decomposition decompose(const Problem& problem, int64_t bound_bytes) {
  Decomposition result;
  for (const Buffer& buffer : problem.buffers) {
    result.offsets.push_back(buffer.fixed_offset.value_or(0));
  }
  const Roles roles = sort_by_role(problem);
  result.stacking_is_free = can_stack_freely(problem, roles);
  const int64_t base_bytes = stack_persistent(problem, roles, result.offsets).taken_from_zero();
  for (std::vector<size_t>& buffers : cut_in_time(problem, roles.movable)) {
    SectionBuilder builder(problem, std::move(buffers));
    for (const size_t i : roles.fixed) builder.add_obstacle(i, result.offsets[i]);
    for (const size_t i : roles.persistent) {
      if (result.offsets[i] >= base_bytes) builder.add_obstacle(i, result.offsets[i]);
    }
    result.sections.push_back(builder.build(base_bytes, bound_bytes));
  }
  return result;
}

}  // namespace trainscope::memplan
