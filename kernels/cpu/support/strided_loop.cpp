// The odometer of loops over rows.
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {

RowWalk::RowWalk(const StridedLoop& loop, std::int64_t begin, std::int64_t end)
    : loop_(loop), operands_(static_cast<std::size_t>(loop.operands)), rest_(end - begin) {
  if (loop.rank == 0) return;
  last_ = static_cast<std::size_t>(loop.rank - 1);
  std::int64_t before = begin;
  for (std::size_t axis = last_ + 1; axis-- > 0;) {
    index_[axis] = before % loop.sizes[axis];
    before /= loop.sizes[axis];
    for (std::size_t k = 0; k < operands_; ++k) offsets_[k] += index_[axis] * loop.strides[k][axis];
  }
  count_ = std::min(loop.sizes[last_] - index_[last_], rest_);
}

void RowWalk::carry() {
  for (std::size_t k = 0; k < operands_; ++k) {
    offsets_[k] -= index_[last_] * loop_.strides[k][last_];
  }
  index_[last_] = 0;
  for (std::size_t axis = last_; axis-- > 0;) {
    const bool carries = ++index_[axis] == loop_.sizes[axis];
    const std::int64_t steps = carries ? 1 - loop_.sizes[axis] : 1;
    for (std::size_t k = 0; k < operands_; ++k) offsets_[k] += steps * loop_.strides[k][axis];
    if (!carries) break;
    index_[axis] = 0;
  }
}

}  // namespace trainscope::cpu
