// Byte ranges per node of a segment tree over slots.
#include "memplan/place/occupancy.h"

#include <algorithm>
#include <bit>

namespace trainscope::memplan {

using std::int64_t;
using std::size_t;

namespace {

// A range is moved in a block with its neighbours, which is far cheaper than looking at it.
constexpr size_t kMovesPerVisit = 16;

struct SlotRange {
  size_t leaf_count = 1;
  std::int32_t first_slot = 0;
  std::int32_t end_slot = 0;
};

// Calls `inside` for the fewest nodes that make up the range, and `border` for their ancestors:
// the nodes that the range covers in part.
template <typename Inside, typename Border>
void visit_nodes(const SlotRange& range, const Inside& inside, const Border& border) {
  const size_t first = range.leaf_count + static_cast<size_t>(range.first_slot);
  const size_t end = range.leaf_count + static_cast<size_t>(range.end_slot);
  size_t left = first;
  size_t right = end;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) inside(left++);
    if (right % 2 == 1) inside(--right);
  }
  const auto covers = [&](size_t node, unsigned level) {
    return node << level >= first && (node + 1) << level <= end;
  };
  size_t low = first;
  size_t high = end - 1;
  for (unsigned level = 0; low > 0; ++level, low /= 2, high /= 2) {
    if (!covers(low, level)) border(low);
    if (low != high && !covers(high, level)) border(high);
  }
}

}  // namespace

size_t RangeSet::add(int64_t begin, int64_t end, int64_t smallest_gap) {
  const auto first = std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.end <= begin && begin - range.end >= smallest_gap;
  });
  auto last = first;
  for (; last != ranges_.end(); ++last) {
    if (last->begin >= end && last->begin - end >= smallest_gap) break;
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
  }
  const auto merged = static_cast<size_t>(last - first);
  const auto moved = static_cast<size_t>(ranges_.end() - last);
  if (first == last) {
    ranges_.insert(first, {begin, end});
  } else {
    *first = {begin, end};
    ranges_.erase(first + 1, last);
  }
  return 1 + merged + moved / kMovesPerVisit;
}

size_t RangeSet::raise_to_fit(int64_t& offset, int64_t size, int64_t alignment) const {
  const auto first = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const Range& range) { return range.end <= offset; });
  auto range = first;
  for (; range != ranges_.end() && range->begin < offset + size; ++range) {
    if (range->end > offset) offset = align_up(range->end, alignment);
  }
  return static_cast<size_t>(range - first) + 1;
}

int64_t RangeSet::taken_from_zero() const {
  return !ranges_.empty() && ranges_.front().begin == 0 ? ranges_.front().end : 0;
}

Occupancy::Occupancy(const Task& task)
    : leaf_count_(std::bit_ceil(static_cast<size_t>(task.slot_count))),
      spanning_(2 * leaf_count_),
      touching_(2 * leaf_count_) {
  for (const Obstacle& obstacle : task.obstacles) take(obstacle, 1);
}

void Occupancy::take(const Obstacle& bytes, int64_t smallest_gap) {
  const auto touch = [&](size_t node) {
    visits_ += touching_[node].add(bytes.begin_bytes, bytes.end_bytes, smallest_gap);
  };
  visit_nodes(
      {leaf_count_, bytes.first_slot, bytes.end_slot},
      [&](size_t node) {
        visits_ += spanning_[node].add(bytes.begin_bytes, bytes.end_bytes, smallest_gap);
        touch(node);
      },
      touch);
}

int64_t Occupancy::lowest_fit(const Box& box, int64_t from) {
  relevant_.clear();
  const auto collect = [&](const RangeSet& ranges) {
    if (!ranges.empty()) relevant_.push_back(&ranges);
  };
  visit_nodes(
      {leaf_count_, box.first_slot, box.end_slot}, [&](size_t node) { collect(touching_[node]); },
      [&](size_t node) { collect(spanning_[node]); });
  int64_t offset = align_up(from, box.alignment_bytes);
  // Each set pushes the offset up until all of them, asked in turn, leave it where it is.
  size_t agreed = 0;
  for (size_t i = 0; agreed < relevant_.size(); i = i + 1 < relevant_.size() ? i + 1 : 0) {
    const int64_t before = offset;
    visits_ += relevant_[i]->raise_to_fit(offset, box.size_bytes, box.alignment_bytes);
    agreed = offset == before ? agreed + 1 : 1;
  }
  return offset;
}

}  // namespace trainscope::memplan
