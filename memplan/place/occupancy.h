// Which bytes are taken when: finds the lowest gap that is free over a whole range of slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/place/placer.h"

namespace trainscope::memplan {

// Disjoint byte ranges in ascending order.
class RangeSet {
 public:
  // Adds [begin, end). Gaps smaller than `smallest_gap` are filled: nobody will ever need them.
  // Like the next function, returns its work as the number of ranges looked at.
  std::size_t add(std::int64_t begin, std::int64_t end, std::int64_t smallest_gap);
  // Raises `offset`, a multiple of the alignment, to the lowest one with `size` free bytes behind.
  std::size_t raise_to_fit(std::int64_t& offset, std::int64_t size, std::int64_t alignment) const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  // How far the bytes from 0 on are taken without a gap.
  [[nodiscard]] std::int64_t taken_from_zero() const;

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::vector<Range> ranges_;
};

// A segment tree over slots. Each node holds the union of the bytes taken by boxes that span the
// whole node (`spanning`) and by boxes that touch it anywhere (`touching`). What is taken during a
// range of slots is then the union of O(log n) such sets, and tight packings merge each of them
// into a handful of ranges; the pairs of overlapping boxes are never listed.
class Occupancy {
 public:
  explicit Occupancy(const Task& task);

  // `smallest_gap`: no later request is smaller than this.
  void take(const Obstacle& bytes, std::int64_t smallest_gap);
  // The lowest aligned address >= from where the box fits.
  [[nodiscard]] std::int64_t lowest_fit(const Box& box, std::int64_t from);
  // Ranges looked at so far: the work done.
  [[nodiscard]] std::uint64_t visits() const { return visits_; }

 private:
  std::size_t leaf_count_ = 1;
  std::vector<RangeSet> spanning_;
  std::vector<RangeSet> touching_;
  std::uint64_t visits_ = 0;
  std::vector<const RangeSet*> relevant_;  // scratch of lowest_fit
};

}  // namespace trainscope::memplan
