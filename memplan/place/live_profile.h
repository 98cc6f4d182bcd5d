// Live bytes per slot of a task, their peak, and the largest over any range of slots.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/place/placer.h"

namespace trainscope::memplan {

// Live bytes in each slot, obstacles included.
[[nodiscard]] std::vector<std::int64_t> live_bytes_per_slot(const Task& task);

// The first slot with the most live bytes.
[[nodiscard]] std::int32_t peak_slot(const Task& task);

// Answers "the most live bytes in this range of slots" in constant time.
class LiveProfile {
 public:
  explicit LiveProfile(const Task& task);

  // Most live bytes in the slots [first_slot, end_slot), which must not be empty.
  [[nodiscard]] std::int64_t max_bytes(std::int32_t first_slot, std::int32_t end_slot) const;

 private:
  // maxima_[k][slot] is the largest of the 2^k slots from `slot` on (a sparse table).
  std::vector<std::vector<std::int64_t>> maxima_;
};

}  // namespace trainscope::memplan
