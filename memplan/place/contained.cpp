// A merge sort tree whose blocks can lose boxes.
#include "memplan/place/contained.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
// Fewer positions are looked at one by one.
constexpr size_t kSmallestLog2 = 5;

}  // namespace

Contained::Contained(const Task& task, const std::vector<int32_t>& rank)
    : task_(task), by_first_(rank.size()), position_of_(rank.size()) {
  std::iota(by_first_.begin(), by_first_.end(), 0);
  const auto first_slot = [&](int32_t box) {
    return task.boxes[static_cast<size_t>(box)].first_slot;
  };
  std::stable_sort(by_first_.begin(), by_first_.end(),
                   [&](int32_t a, int32_t b) { return first_slot(a) < first_slot(b); });
  std::vector<int32_t> ends;
  for (const int32_t box : by_first_) {
    const int32_t own_rank = rank[static_cast<size_t>(box)];
    position_of_[static_cast<size_t>(own_rank)] = static_cast<int32_t>(rank_at_.size());
    first_slots_.push_back(first_slot(box));
    rank_at_.push_back(own_rank);
    ends.push_back(task.boxes[static_cast<size_t>(box)].end_slot);
  }
  while (padded_ < rank.size()) padded_ *= 2;
  for (size_t log2 = 0; (size_t{1} << log2) <= padded_; ++log2) {
    levels_.emplace_back();
    if (log2 >= kSmallestLog2) build_level(log2, ends);
  }
}

void Contained::build_level(size_t log2, const std::vector<int32_t>& ends) {
  Level& level = levels_[log2];
  const size_t size = size_t{1} << log2;
  level.ends.assign(padded_, kNone);
  level.lowest.assign(2 * padded_, kNone);
  level.leaf_of.assign(ends.size(), 0);
  std::vector<int32_t> positions;
  for (size_t begin = 0; begin < ends.size(); begin += size) {
    positions.resize(std::min(size, ends.size() - begin));
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(begin));
    std::sort(positions.begin(), positions.end(), [&](int32_t a, int32_t b) {
      return ends[static_cast<size_t>(a)] < ends[static_cast<size_t>(b)];
    });
    int32_t* const tree = level.lowest.data() + 2 * begin;
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto position = static_cast<size_t>(positions[i]);
      level.ends[begin + i] = ends[position];
      level.leaf_of[position] = static_cast<int32_t>(i);
      tree[size + i] = rank_at_[position];
    }
    for (size_t node = size; node-- > 1;) {
      tree[node] = std::min(tree[2 * node], tree[2 * node + 1]);
    }
  }
}

int32_t Contained::lowest_in_block(size_t log2, size_t block, int32_t end_slot) const {
  const Level& level = levels_[log2];
  const size_t size = size_t{1} << log2;
  const int32_t* const ends = level.ends.data() + block * size;
  const int32_t* const tree = level.lowest.data() + 2 * block * size;
  auto count = static_cast<size_t>(std::upper_bound(ends, ends + size, end_slot) - ends);
  int32_t lowest = kNone;
  size_t left = size;
  for (size_t right = size + count; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) lowest = std::min(lowest, tree[left++]);
    if (right % 2 == 1) lowest = std::min(lowest, tree[--right]);
  }
  return lowest;
}

int32_t Contained::take_first(int32_t first_slot, int32_t end_slot) {
  const auto position_from = [&](int32_t slot) {
    return static_cast<size_t>(std::lower_bound(first_slots_.begin(), first_slots_.end(), slot) -
                               first_slots_.begin());
  };
  size_t begin = position_from(first_slot);
  const size_t end = position_from(end_slot);
  int32_t lowest = kNone;
  while (begin < end) {
    size_t log2 = 0;  // of the largest block that begins here and does not go beyond the end
    while (log2 + 1 < levels_.size() && begin % (size_t{2} << log2) == 0 &&
           begin + (size_t{2} << log2) <= end) {
      ++log2;
    }
    if (log2 >= kSmallestLog2) {
      lowest = std::min(lowest, lowest_in_block(log2, begin >> log2, end_slot));
      begin += size_t{1} << log2;
    } else {
      const auto box = static_cast<size_t>(by_first_[begin]);
      if (task_.boxes[box].end_slot <= end_slot) lowest = std::min(lowest, rank_at_[begin]);
      ++begin;
    }
  }
  if (lowest == kNone) return -1;
  const auto position = static_cast<size_t>(position_of_[static_cast<size_t>(lowest)]);
  remove(position);
  return by_first_[position];
}

void Contained::remove(size_t position) {
  rank_at_[position] = kNone;
  for (size_t log2 = kSmallestLog2; log2 < levels_.size(); ++log2) {
    Level& level = levels_[log2];
    const size_t size = size_t{1} << log2;
    int32_t* const tree = level.lowest.data() + 2 * (position & ~(size - 1));
    size_t node = size + static_cast<size_t>(level.leaf_of[position]);
    tree[node] = kNone;
    for (node /= 2; node > 0; node /= 2) tree[node] = std::min(tree[2 * node], tree[2 * node + 1]);
  }
}

}  // namespace trainscope::memplan
