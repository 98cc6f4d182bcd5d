// A task as the exact search sees it: small integers, and only the slots that matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memplan/place/placer.h"

namespace trainscope::memplan {

// Bytes divided by SearchModel::unit_bytes.
using Units = std::int32_t;

// Addresses that a box cannot use, because of an obstacle during its lifetime.
struct Block {
  Units begin = 0;
  Units end = 0;
};

struct SearchBox {
  std::int32_t first_slot = 0;
  std::int32_t end_slot = 0;
  Units size = 0;
  Units alignment = 1;
  std::int32_t first_block = 0;  // its range in SearchModel::blocks, ascending and disjoint
  std::int32_t end_block = 0;
  std::int32_t span = 0;   // boxes of one span have the same slots and alignment
  std::int32_t twin = -1;  // the box before this one that is equal to it in all respects
};

// An obstacle above the base.
struct PinnedBox {
  std::int32_t first_slot = 0;
  std::int32_t end_slot = 0;
  Units begin = 0;
  Units size = 0;
};

// Slots are the maximal sets of boxes alive together: a slot whose boxes are all alive in its
// neighbour too says nothing new and is left out.
struct SearchModel {
  std::vector<SearchBox> boxes = {};          // by first slot
  std::vector<std::int32_t> task_index = {};  // of each box, in Task::boxes
  std::vector<Block> blocks = {};
  std::vector<PinnedBox> pinned = {};         // highest first
  std::vector<std::int32_t> alive = {};       // boxes, slot by slot
  std::vector<std::size_t> first_alive = {};  // per slot and one more: where it begins in `alive`
  std::int32_t slot_count = 0;
  std::int32_t span_count = 0;
  Units base = 0;
  std::int64_t unit_bytes = 1;  // divides every size, obstacle and alignment that matters

  [[nodiscard]] std::span<const std::int32_t> alive_in(std::int32_t slot) const {
    const auto at = static_cast<std::size_t>(slot);
    return std::span(alive).subspan(first_alive[at], first_alive[at + 1] - first_alive[at]);
  }

  // The lowest address >= from that the box may have as far as obstacles and alignment go.
  [[nodiscard]] Units lowest(const SearchBox& box, Units from) const;
};

// Nothing if some address up to `highest_bytes` does not fit into Units.
[[nodiscard]] std::optional<SearchModel> make_search_model(const Task& task,
                                                           std::int64_t highest_bytes);

}  // namespace trainscope::memplan
