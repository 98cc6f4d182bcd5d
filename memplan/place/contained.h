// Boxes by time: which is the first, in some order, whose lifetime lies in a range of slots?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/place/placer.h"

namespace trainscope::memplan {

// A lifetime is a point (first slot, end slot), and the lifetimes within a range are a quadrant.
// The points lie on a Z-order curve (Morton 1966), so that neighbours on it are neighbours in the
// plane; over it is a binary tree in which each node knows the frame and the lowest rank of what is
// left below. O(log n) for a box taken; a question looks at the nodes that the quadrant's border
// cuts and that may hold a lower rank than the best so far.
class Contained {
 public:
  // Ranks are 0, 1, ... in some order.
  Contained(const Task& task, const std::vector<std::int32_t>& rank);

  // Removes the box of lowest rank that begins at `first_slot` or later and ends at `end_slot` or
  // before; -1 if there is none.
  std::int32_t take_first(std::int32_t first_slot, std::int32_t end_slot);

 private:
  struct Point {
    std::int32_t first_slot = 0;
    std::int32_t end_slot = 0;
    std::int32_t rank = 0;  // kNone once taken
    std::int32_t box = 0;
  };
  // Of the points that are left.
  struct Node {
    std::int32_t lowest_rank;
    std::int32_t min_first;
    std::int32_t max_first;
    std::int32_t min_end;
    std::int32_t max_end;

    bool operator==(const Node&) const = default;
  };

  [[nodiscard]] Node leaf(std::size_t number) const;
  [[nodiscard]] Node parent(std::size_t node) const;
  void remove(std::size_t position);

  std::size_t leaf_count_ = 1;      // a power of two
  std::vector<Point> points_ = {};  // along the curve, several to a leaf
  std::vector<std::size_t> position_of_rank_ = {};
  std::vector<Node> nodes_ = {};  // the root is 1, the leaves come last
};

}  // namespace trainscope::memplan
