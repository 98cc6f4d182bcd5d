// The checker: a sweep over time with the live buffers kept in order of address.
#include "memplan/validate.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

// Ends are compared as `size > limit - offset` so that no offset, however wild, overflows.
bool ends_above(int64_t offset, int64_t size_bytes, int64_t limit_bytes) {
  return offset > limit_bytes || size_bytes > limit_bytes - offset;
}

class Checker {
 public:
  Checker(const Problem& problem, const Solution& solution)
      : problem_(problem), solution_(solution) {}

  std::vector<Violation> run() {
    const size_t count = problem_.buffers.size();
    if (solution_.offsets.size() != count) {
      blame(ViolationKind::kWrongCount, 0, 0,
            std::to_string(solution_.offsets.size()) + " offsets for " + std::to_string(count) +
                " buffers");
      return std::move(violations_);
    }
    for (size_t i = 0; i < count; ++i) check_offset(i);
    sweep();
    check_totals();
    return std::move(violations_);
  }

 private:
  void blame(ViolationKind kind, size_t buffer, size_t other, std::string message) {
    violations_.push_back(
        {.kind = kind, .buffer = buffer, .other = other, .message = std::move(message)});
  }

  std::string place_of(size_t index) const {
    return describe_buffer(problem_, index) + " (" +
           std::to_string(problem_.buffers[index].size_bytes) + " bytes at " +
           std::to_string(solution_.offsets[index]) + ")";
  }

  void check_offset(size_t index) {
    const Buffer& buffer = problem_.buffers[index];
    const int64_t offset = solution_.offsets[index];
    const int64_t alignment = std::max(problem_.alignment_bytes, buffer.alignment_bytes);
    if (offset < 0) {
      blame(ViolationKind::kNegative, index, index, place_of(index) + " is below zero");
    } else if (ends_above(offset, buffer.size_bytes, solution_.height_bytes)) {
      blame(ViolationKind::kAboveHeight, index, index,
            place_of(index) + " ends above the height " + std::to_string(solution_.height_bytes));
    }
    if (offset % alignment != 0) {
      blame(ViolationKind::kMisaligned, index, index,
            place_of(index) + " is not at a multiple of " + std::to_string(alignment));
    }
    if (buffer.fixed_offset && *buffer.fixed_offset != offset) {
      blame(ViolationKind::kMoved, index, index,
            place_of(index) + " is fixed at " + std::to_string(*buffer.fixed_offset));
    }
  }

  // The set of live buffers stays free of overlaps (an offender is blamed and left out), so a
  // newcomer can only clash with its two neighbours in address.
  void sweep() {
    struct Event {
      int64_t time;
      bool birth;
      size_t buffer;
    };
    std::vector<Event> events;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      if (problem_.buffers[i].size_bytes <= 0 || solution_.offsets[i] < 0) continue;
      events.push_back({problem_.buffers[i].lower, true, i});
      events.push_back({problem_.buffers[i].upper, false, i});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.time, a.birth, a.buffer) < std::tie(b.time, b.birth, b.buffer);
    });
    for (const Event& event : events) {
      if (event.birth) {
        admit(event.buffer);
      } else {
        const auto found = live_.find(solution_.offsets[event.buffer]);
        if (found != live_.end() && found->second == event.buffer) live_.erase(found);
      }
    }
  }

  void admit(size_t index) {
    const int64_t offset = solution_.offsets[index];
    const auto above = live_.lower_bound(offset);
    if (above != live_.end() &&
        ends_above(offset, problem_.buffers[index].size_bytes, above->first)) {
      return blame_overlap(index, above->second);
    }
    if (above != live_.begin()) {
      const auto [below_offset, below] = *std::prev(above);
      if (ends_above(below_offset, problem_.buffers[below].size_bytes, offset)) {
        return blame_overlap(index, below);
      }
    }
    live_.emplace(offset, index);
  }

  void blame_overlap(size_t index, size_t other) {
    const int64_t time = std::max(problem_.buffers[index].lower, problem_.buffers[other].lower);
    blame(ViolationKind::kOverlap, index, other,
          place_of(index) + " and " + place_of(other) + " share bytes at time " +
              std::to_string(time));
  }

  void check_totals() {
    const int64_t height = solution_.height_bytes;
    if (problem_.capacity_bytes && height > *problem_.capacity_bytes) {
      blame(ViolationKind::kAboveCapacity, 0, 0,
            "height " + std::to_string(height) + " is above the capacity " +
                std::to_string(*problem_.capacity_bytes));
    }
    const bool meets_bound = height == solution_.lower_bound_bytes;
    if (height < solution_.lower_bound_bytes || solution_.proven != meets_bound) {
      blame(ViolationKind::kWrongBound, 0, 0,
            "height " + std::to_string(height) + " with lower bound " +
                std::to_string(solution_.lower_bound_bytes) + " is stated as " +
                (solution_.proven ? "proven" : "not proven"));
    }
  }

  const Problem& problem_;
  const Solution& solution_;
  std::map<int64_t, size_t> live_;  // offset -> buffer
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> validate(const Problem& problem, const Solution& solution) {
  return Checker(problem, solution).run();
}

}  // namespace trainscope::memplan
