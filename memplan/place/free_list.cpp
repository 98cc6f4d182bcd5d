// Gaps by address and by size; neighbours are joined as soon as they are free.
#include "memplan/place/free_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "memplan/place/placer.h"

namespace trainscope::memplan {

using std::int64_t;

FreeList::FreeList(int64_t base, int64_t ceiling) : ceiling_(std::max(base, ceiling)) {
  insert(base, ceiling_);
}

int64_t FreeList::take(int64_t size, int64_t alignment, Side side) {
  for (auto gap = by_size_.lower_bound({size, 0}); gap != by_size_.end(); ++gap) {
    const int64_t begin = gap->second;
    const int64_t end = begin + gap->first;
    const int64_t low = align_up(begin, alignment);
    if (low + size > end) continue;
    const int64_t offset = side == Side::kLow ? low : end - size - (end - size) % alignment;
    take_at(offset, size);
    return offset;
  }
  return take_on_top(size, alignment);
}

void FreeList::give(int64_t begin, int64_t size) {
  int64_t end = begin + size;
  const auto above = by_begin_.lower_bound(begin);
  if (above != by_begin_.begin()) {
    const auto [below_begin, below_end] = *std::prev(above);
    if (below_end == begin) {
      erase(below_begin, below_end);
      begin = below_begin;
    }
  }
  const auto next = by_begin_.find(end);
  if (next != by_begin_.end()) {
    const auto [next_begin, next_end] = *next;
    erase(next_begin, next_end);
    end = next_end;
  }
  insert(begin, end);
}

void FreeList::block(int64_t begin, int64_t end) {
  if (end > ceiling_) raise_ceiling(end);
  auto gap = by_begin_.upper_bound(begin);
  if (gap != by_begin_.begin()) --gap;
  while (gap != by_begin_.end() && gap->first < end) {
    const auto [gap_begin, gap_end] = *gap++;
    if (gap_end <= begin) continue;
    erase(gap_begin, gap_end);
    insert(gap_begin, begin);
    insert(end, gap_end);
  }
}

void FreeList::insert(int64_t begin, int64_t end) {
  if (begin >= end) return;
  by_begin_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
}

void FreeList::erase(int64_t begin, int64_t end) {
  by_begin_.erase(begin);
  by_size_.erase({end - begin, begin});
}

void FreeList::raise_ceiling(int64_t ceiling) {
  const int64_t old = std::exchange(ceiling_, ceiling);
  give(old, ceiling - old);
}

void FreeList::take_at(int64_t offset, int64_t size) {
  const auto [begin, end] = *std::prev(by_begin_.upper_bound(offset));
  erase(begin, end);
  insert(begin, offset);
  insert(offset + size, end);
}

int64_t FreeList::take_on_top(int64_t size, int64_t alignment) {
  int64_t begin = ceiling_;
  if (!by_begin_.empty() && by_begin_.rbegin()->second == ceiling_) {
    begin = by_begin_.rbegin()->first;
  }
  const int64_t offset = align_up(begin, alignment);
  raise_ceiling(offset + size);
  take_at(offset, size);
  return offset;
}

}  // namespace trainscope::memplan
