// Strided loops row by row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/api/strided_loop.h"

namespace trainscope::cpu {

// Goes over the rows of the elements [begin, end) of a loop, begin < end, in row-major order:
// `count` elements along the last axis from offsets[k] in operand k. The rest is in the source:
// inlined into each kernel's loop it doubled the time to compile.
class RowWalk {
 public:
  RowWalk(const StridedLoop& loop, std::int64_t begin, std::int64_t end);

  const Offsets& offsets() const { return offsets_; }
  std::int64_t count() const { return count_; }

  // To the next row; false where there is none.
  bool next() {
    rest_ -= count_;
    if (rest_ <= 0) return false;
    // Whole rows follow each other along the last axis but one; only its end is worth a call.
    if (index_[last_] != 0 || last_ == 0 || index_[last_ - 1] + 1 == loop_.sizes[last_ - 1]) {
      carry();
    } else {
      ++index_[last_ - 1];
      for (std::size_t k = 0; k < operands_; ++k) offsets_[k] += loop_.strides[k][last_ - 1];
    }
    count_ = std::min(loop_.sizes[last_], rest_);
    return true;
  }

 private:
  // Back to the beginning of this row, then one further along the nearest axis that has room.
  void carry();

  const StridedLoop& loop_;
  Offsets offsets_{};
  Strides index_{};
  std::size_t operands_;
  std::size_t last_ = 0;  // axis
  std::int64_t count_ = 1;
  std::int64_t rest_;  // elements from this row's first one on
};

// Calls row(offsets, count) for the rows of the elements [begin, end) of the loop.
template <class Row>
void for_each_row(const StridedLoop& loop, std::int64_t begin, std::int64_t end, Row&& row) {
  if (begin >= end) return;
  RowWalk walk(loop, begin, end);
  do {
    row(walk.offsets(), walk.count());
  } while (walk.next());
}

// target[i * target_stride] = source[i * source_stride] for i < count.
template <class T>
void copy_row(const T* source, std::int64_t source_stride, T* target, std::int64_t target_stride,
              std::int64_t count) {
  if (source_stride == 1 && target_stride == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  if (target_stride == 1 && source_stride == 0) {
    std::fill_n(target, count, *source);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) target[i * target_stride] = source[i * source_stride];
}

}  // namespace trainscope::cpu
