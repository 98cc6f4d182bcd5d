// Boxes by time: which is the first, in some order, whose life lies in a range of slots?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/place/placer.h"

namespace trainscope::memplan {

// Boxes by first slot, in blocks of each power of two; each block has its boxes by end slot, under
// a tree of the lowest rank. O(log^2 n) for a question, O(log^2 n) for a box taken.
class Contained {
 public:
  // Ranks are 0, 1, ... in some order.
  Contained(const Task& task, const std::vector<std::int32_t>& rank);

  // Removes the box of lowest rank that begins at `first_slot` or later and ends at `end_slot` or
  // before; -1 if there is none.
  std::int32_t take_first(std::int32_t first_slot, std::int32_t end_slot);

 private:
  // One size of blocks: block b holds the positions [b * size, (b + 1) * size) of by_first_.
  struct Level {
    std::vector<std::int32_t> ends = {};     // ascending within a block
    std::vector<std::int32_t> lowest = {};   // per block a tree: 2 * size ranks, leaves last
    std::vector<std::int32_t> leaf_of = {};  // by position: its place in the block's order of ends
  };

  void build_level(std::size_t log2, const std::vector<std::int32_t>& ends);
  std::int32_t lowest_in_block(std::size_t log2, std::size_t block, std::int32_t end_slot) const;
  void remove(std::size_t position);

  const Task& task_;
  std::size_t padded_ = 1;                      // positions, a power of two
  std::vector<std::int32_t> by_first_ = {};     // box at each position
  std::vector<std::int32_t> first_slots_ = {};  // of the boxes at the positions
  std::vector<std::int32_t> rank_at_ = {};      // by position; kNone once taken
  std::vector<std::int32_t> position_of_ = {};  // by rank
  std::vector<Level> levels_ = {};              // by log2 of the size; the small ones are empty
};

}  // namespace trainscope::memplan
