// The checker: who had these bytes last, and is every use of it over?
#include "memplan/streams/validate.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// The dependencies as arcs back in time, and the places of operations in one allowed order.
class Dependencies {
 public:
  explicit Dependencies(const StreamProblem& problem)
      : earlier_(problem.operations.size()), place_(problem.operations.size(), kUnplaced) {
    std::map<int32_t, int32_t> last_of_stream;
    for (size_t i = 0; i < earlier_.size(); ++i) {
      earlier_[i] = problem.operations[i].after;
      const auto index = static_cast<int32_t>(i);
      const auto [last, first] = last_of_stream.try_emplace(problem.operations[i].stream, index);
      if (!first) earlier_[i].push_back(std::exchange(last->second, index));
    }
    for (size_t i = 0; i < earlier_.size(); ++i) put_in_order(static_cast<int32_t>(i));
  }

  const std::vector<int32_t>& order() const { return order_; }

  // Whether every one of `wanted` ends before `operation` begins.
  bool all_before(std::vector<int32_t> wanted, int32_t operation) {
    int64_t earliest = place_[at(operation)];
    for (const int32_t other : wanted) earliest = std::min(earliest, place_[at(other)]);
    visited_.assign(earlier_.size(), 0);
    std::vector<int32_t> stack = {operation};
    while (!stack.empty() && !wanted.empty()) {
      const int32_t now = stack.back();
      stack.pop_back();
      for (const int32_t other : earlier_[at(now)]) {
        if (visited_[at(other)] != 0 || place_[at(other)] < earliest) continue;
        visited_[at(other)] = 1;
        std::erase(wanted, other);
        stack.push_back(other);
      }
    }
    return wanted.empty();
  }

 private:
  static constexpr int64_t kUnplaced = -1;

  // Behind everything that it waits for.
  void put_in_order(int32_t operation) {
    std::vector<int32_t> stack = {operation};
    while (!stack.empty()) {
      const int32_t now = stack.back();
      const size_t waiting = stack.size();
      if (place_[at(now)] == kUnplaced) {
        for (const int32_t other : earlier_[at(now)]) {
          if (place_[at(other)] == kUnplaced) stack.push_back(other);
        }
      }
      if (stack.size() > waiting) continue;
      stack.pop_back();
      if (place_[at(now)] != kUnplaced) continue;
      place_[at(now)] = static_cast<int64_t>(order_.size());
      order_.push_back(now);
    }
  }

  std::vector<std::vector<int32_t>> earlier_;
  std::vector<int64_t> place_;
  std::vector<int32_t> order_;
  std::vector<char> visited_;
};

class StreamChecker {
 public:
  StreamChecker(const StreamProblem& problem, const Solution& solution)
      : problem_(problem), solution_(solution), dependencies_(problem) {}

  std::vector<Violation> run() {
    const size_t count = problem_.buffers.size();
    if (solution_.offsets.size() != count) {
      blame(ViolationKind::kWrongCount, 0, 0,
            std::to_string(solution_.offsets.size()) + " offsets for " + std::to_string(count) +
                " buffers");
      return std::move(violations_);
    }
    for (size_t i = 0; i < count; ++i) check_offset(i);
    replay();
    check_totals();
    return std::move(violations_);
  }

 private:
  void blame(ViolationKind kind, size_t buffer, size_t other, std::string message) {
    violations_.push_back(
        {.kind = kind, .buffer = buffer, .other = other, .message = std::move(message)});
  }

  int64_t size_of(size_t index) const { return problem_.buffers[index].size_bytes; }

  std::string place_of(size_t index) const {
    return describe_buffer(problem_, index) + " (" + std::to_string(size_of(index)) + " bytes at " +
           std::to_string(solution_.offsets[index]) + ")";
  }

  void check_offset(size_t index) {
    const int64_t offset = solution_.offsets[index];
    if (offset < 0) {
      blame(ViolationKind::kNegative, index, index, place_of(index) + " is below zero");
    } else if (offset > solution_.height_bytes ||
               size_of(index) > solution_.height_bytes - offset) {
      blame(ViolationKind::kAboveHeight, index, index,
            place_of(index) + " ends above the height " + std::to_string(solution_.height_bytes));
    }
    if (offset % problem_.alignment_bytes != 0) {
      blame(
          ViolationKind::kMisaligned, index, index,
          place_of(index) + " is not at a multiple of " + std::to_string(problem_.alignment_bytes));
    }
  }

  void replay() {
    std::vector<std::vector<size_t>> births(problem_.operations.size());
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const bool sound = solution_.offsets[i] >= 0 && size_of(i) > 0;
      if (!sound) continue;
      const int32_t producer = problem_.buffers[i].producer;
      if (producer == kNoOperation) {
        take_over(i);
      } else {
        births[at(producer)].push_back(i);
      }
    }
    for (const int32_t operation : dependencies_.order()) {
      for (const size_t buffer : births[at(operation)]) take_over(buffer);
    }
  }

  bool is_over(size_t earlier, size_t buffer) {
    const StreamBuffer& used = problem_.buffers[earlier];
    const int32_t birth = problem_.buffers[buffer].producer;
    if (used.kept || birth == kNoOperation) return false;
    std::vector<int32_t> uses = used.readers;
    if (used.producer != kNoOperation) uses.push_back(used.producer);
    std::sort(uses.begin(), uses.end());
    uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
    return dependencies_.all_before(std::move(uses), birth);
  }

  // Cuts the buffer's bytes out of the ranges of those that had them.
  void take_over(size_t buffer) {
    const int64_t begin = solution_.offsets[buffer];
    if (size_of(buffer) > std::numeric_limits<int64_t>::max() - begin) return;  // blamed already
    const int64_t end = begin + size_of(buffer);
    auto range = owners_.upper_bound(begin);
    if (range != owners_.begin()) --range;
    std::vector<size_t> earlier;
    while (range != owners_.end() && range->first < end) {
      const auto [range_begin, owner] = *range++;
      if (owner.end <= begin) continue;
      owners_.erase(range_begin);
      earlier.push_back(owner.buffer);
      if (range_begin < begin) owners_[range_begin] = {begin, owner.buffer};
      if (owner.end > end) owners_[end] = {owner.end, owner.buffer};
    }
    owners_[begin] = {end, buffer};
    std::sort(earlier.begin(), earlier.end());
    earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
    for (const size_t other : earlier) {
      if (is_over(other, buffer)) continue;
      blame(ViolationKind::kOverlap, buffer, other,
            place_of(buffer) + " takes bytes of " + place_of(other) +
                ", of which not every use is known to be over by then");
      return;
    }
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

  struct Owner {
    int64_t end = 0;
    size_t buffer = 0;
  };

  const StreamProblem& problem_;
  const Solution& solution_;
  Dependencies dependencies_;
  std::map<int64_t, Owner> owners_;  // by first byte: who had it last
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> validate_streams(const StreamProblem& problem, const Solution& solution) {
  return StreamChecker(problem, solution).run();
}

}  // namespace trainscope::memplan
