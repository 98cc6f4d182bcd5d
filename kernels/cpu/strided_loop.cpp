// The odometer of loops over rows.
#include "kernels/cpu/strided_loop.h"

namespace trainscope::cpu {

RowWalk::RowWalk(const StridedLoop& loop, std::int64_t begin, std::int64_t end)
    : loop_(loop), rest_(end - begin) {
  if (loop.rank == 0) return;
  const auto operands = static_cast<std::size_t>(loop.operands);
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  std::int64_t before = begin;
  for (std::size_t axis = last + 1; axis-- > 0;) {
    index_[axis] = before % loop.sizes[axis];
    before /= loop.sizes[axis];
    for (std::size_t k = 0; k < operands; ++k) offsets_[k] += index_[axis] * loop.strides[k][axis];
  }
  count_ = std::min(loop.sizes[last] - index_[last], rest_);
}

bool RowWalk::next() {
  rest_ -= count_;
  if (rest_ <= 0) return false;
  const auto operands = static_cast<std::size_t>(loop_.operands);
  const auto last = static_cast<std::size_t>(loop_.rank - 1);
  // Back to the beginning of this row, then one further along the nearest axis that has room.
  for (std::size_t k = 0; k < operands; ++k) offsets_[k] -= index_[last] * loop_.strides[k][last];
  index_[last] = 0;
  for (std::size_t axis = last; axis-- > 0;) {
    const bool carry = ++index_[axis] == loop_.sizes[axis];
    const std::int64_t steps = carry ? 1 - loop_.sizes[axis] : 1;
    for (std::size_t k = 0; k < operands; ++k) offsets_[k] += steps * loop_.strides[k][axis];
    if (!carry) break;
    index_[axis] = 0;
  }
  count_ = std::min(loop_.sizes[last], rest_);
  return true;
}

}  // namespace trainscope::cpu
