// The free bytes of a arena that is walked through time: best fit, low or high in the gap.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace trainscope::memplan {

enum class Side { kLow, kHigh };

// The free bytes of [base, ceiling); the ceiling rises when nothing fits.
class FreeList {
 public:
  FreeList(std::int64_t base, std::int64_t ceiling);

  // Takes the smallest gap that fits (of equal ones the lowest), at its low or high end.
  std::int64_t take(std::int64_t size, std::int64_t alignment, Side side);
  void give(std::int64_t begin, std::int64_t size);
  // Takes [begin, end), wherever it is free.
  void block(std::int64_t begin, std::int64_t end);

 private:
  void insert(std::int64_t begin, std::int64_t end);
  void erase(std::int64_t begin, std::int64_t end);
  void raise_ceiling(std::int64_t ceiling);
  void take_at(std::int64_t offset, std::int64_t size);
  std::int64_t take_on_top(std::int64_t size, std::int64_t alignment);

  std::int64_t ceiling_ = 0;
  std::map<std::int64_t, std::int64_t> by_begin_;            // begin -> end
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // (size, begin)
};

}  // namespace trainscope::memplan
