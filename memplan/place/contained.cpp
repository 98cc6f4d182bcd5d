// A tree of frames over the points of lifetimes, in Z-order.
#include "memplan/place/contained.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;
using std::uint64_t;

constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
constexpr size_t kLeafPoints = 8;
// A path down the tree leaves one sibling a level behind.
constexpr size_t kDeepest = 64;

// Bit i goes to bit 2 i.
uint64_t spread_bits(int32_t value) {
  uint64_t bits = static_cast<std::uint32_t>(value);
  bits = (bits | (bits << 16)) & 0x0000ffff0000ffffU;
  bits = (bits | (bits << 8)) & 0x00ff00ff00ff00ffU;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f0f0f0f0fU;
  bits = (bits | (bits << 2)) & 0x3333333333333333U;
  return (bits | (bits << 1)) & 0x5555555555555555U;
}

}  // namespace

Contained::Contained(const Task& task, const std::vector<int32_t>& rank)
    : position_of_rank_(rank.size()) {
  std::vector<std::pair<uint64_t, int32_t>> curve;  // place on it, box
  curve.reserve(rank.size());
  for (const Box& box : task.boxes) {
    curve.emplace_back(2 * spread_bits(box.first_slot) + spread_bits(box.end_slot),
                       static_cast<int32_t>(curve.size()));
  }
  std::sort(curve.begin(), curve.end());
  points_.reserve(curve.size());
  for (const auto& [place, box] : curve) {
    const Box& lifetime = task.boxes[static_cast<size_t>(box)];
    const int32_t own_rank = rank[static_cast<size_t>(box)];
    position_of_rank_[static_cast<size_t>(own_rank)] = points_.size();
    points_.push_back({lifetime.first_slot, lifetime.end_slot, own_rank, box});
  }
  while (leaf_count_ * kLeafPoints < points_.size()) leaf_count_ *= 2;
  nodes_.resize(2 * leaf_count_);
  for (size_t i = 0; i < leaf_count_; ++i) nodes_[leaf_count_ + i] = leaf(i);
  for (size_t i = leaf_count_; i-- > 1;) nodes_[i] = parent(i);
}

Contained::Node Contained::leaf(size_t number) const {
  Node node{
      .lowest_rank = kNone, .min_first = kNone, .max_first = -1, .min_end = kNone, .max_end = -1};
  const size_t end = std::min(points_.size(), (number + 1) * kLeafPoints);
  for (size_t i = number * kLeafPoints; i < end; ++i) {
    const Point& point = points_[i];
    if (point.rank == kNone) continue;
    node.lowest_rank = std::min(node.lowest_rank, point.rank);
    node.min_first = std::min(node.min_first, point.first_slot);
    node.max_first = std::max(node.max_first, point.first_slot);
    node.min_end = std::min(node.min_end, point.end_slot);
    node.max_end = std::max(node.max_end, point.end_slot);
  }
  return node;
}

Contained::Node Contained::parent(size_t node) const {
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  return {.lowest_rank = std::min(left.lowest_rank, right.lowest_rank),
          .min_first = std::min(left.min_first, right.min_first),
          .max_first = std::max(left.max_first, right.max_first),
          .min_end = std::min(left.min_end, right.min_end),
          .max_end = std::max(left.max_end, right.max_end)};
}

int32_t Contained::take_first(int32_t first_slot, int32_t end_slot) {
  int32_t lowest = kNone;
  std::array<size_t, kDeepest> waiting;
  size_t count = 0;
  waiting[count++] = 1;
  while (count > 0) {
    const size_t index = waiting[--count];
    const Node& node = nodes_[index];
    if (node.lowest_rank >= lowest || node.max_first < first_slot || node.min_end > end_slot) {
      continue;
    }
    if (node.min_first >= first_slot && node.max_end <= end_slot) {
      lowest = node.lowest_rank;
    } else if (index < leaf_count_) {
      // The more promising child is looked at first.
      const bool left = nodes_[2 * index].lowest_rank < nodes_[2 * index + 1].lowest_rank;
      waiting[count++] = 2 * index + (left ? 1 : 0);
      waiting[count++] = 2 * index + (left ? 0 : 1);
    } else {
      const size_t begin = (index - leaf_count_) * kLeafPoints;
      const size_t end = std::min(points_.size(), begin + kLeafPoints);
      for (size_t i = begin; i < end; ++i) {
        const Point& point = points_[i];
        const bool within = point.first_slot >= first_slot && point.end_slot <= end_slot;
        if (within) lowest = std::min(lowest, point.rank);
      }
    }
  }
  if (lowest == kNone) return -1;
  const size_t position = position_of_rank_[static_cast<size_t>(lowest)];
  remove(position);
  return points_[position].box;
}

void Contained::remove(size_t position) {
  points_[position].rank = kNone;
  size_t node = leaf_count_ + position / kLeafPoints;
  nodes_[node] = leaf(position / kLeafPoints);
  for (node /= 2; node > 0; node /= 2) {
    const Node now = parent(node);
    if (now == nodes_[node]) return;
    nodes_[node] = now;
  }
}

}  // namespace trainscope::memplan
