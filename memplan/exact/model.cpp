// Scales, compresses and classifies a task for the exact search.
#include "memplan/exact/model.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// Sums of two addresses must fit into Units as well.
constexpr int64_t kLargestAddress = int64_t{1} << 30;

// The largest unit in which every address of a placement without slack is a whole number: offsets
// are sums of sizes on top of the base or of an obstacle, rounded up to alignments.
int64_t unit_bytes_of(const Task& task) {
  int64_t unit = task.base_bytes;
  for (const Box& box : task.boxes) unit = std::gcd(unit, box.size_bytes);
  for (const Obstacle& obstacle : task.obstacles) {
    if (obstacle.end_bytes <= task.base_bytes) continue;
    unit = std::gcd(unit, obstacle.end_bytes);
    unit = std::gcd(unit, std::max(obstacle.begin_bytes, task.base_bytes));
  }
  // An alignment that divides the unit never rounds anything; the others make it finer.
  for (int64_t before = 0; before != unit;) {
    before = unit;
    for (const Box& box : task.boxes) {
      if (unit % box.alignment_bytes != 0) unit = std::gcd(unit, box.alignment_bytes);
    }
  }
  return unit;
}

// New number of each old slot's first kept slot at or after it, one more entry at the end.
// A slot is kept if something dies right after it; any other is covered by its successor.
std::vector<int32_t> keep_maximal_slots(const Task& task) {
  std::vector<char> dies_before(static_cast<size_t>(task.slot_count) + 1, 0);
  for (const Box& box : task.boxes) dies_before[static_cast<size_t>(box.end_slot)] = 1;
  for (const Obstacle& obstacle : task.obstacles) {
    dies_before[static_cast<size_t>(obstacle.end_slot)] = 1;
  }
  std::vector<int32_t> kept_before(dies_before.size(), 0);
  for (size_t slot = 1; slot < kept_before.size(); ++slot) {
    kept_before[slot] = kept_before[slot - 1] + dies_before[slot];
  }
  return kept_before;
}

class ModelBuilder {
 public:
  explicit ModelBuilder(const Task& task) : task_(task), kept_before_(keep_maximal_slots(task)) {
    model_.unit_bytes = unit_bytes_of(task);
    model_.base = units(task.base_bytes);
    model_.slot_count = kept_before_.back();
  }

  SearchModel build() {
    add_pinned();
    std::vector<int32_t> order(task_.boxes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return box_at(a).first_slot < box_at(b).first_slot;
    });
    for (const int32_t index : order) add_box(index);
    list_alive();
    return std::move(model_);
  }

 private:
  const Box& box_at(int32_t index) const { return task_.boxes[static_cast<size_t>(index)]; }
  int32_t slot(int32_t old) const { return kept_before_[static_cast<size_t>(old)]; }
  Units units(int64_t bytes) const { return static_cast<Units>(bytes / model_.unit_bytes); }

  void add_pinned() {
    for (const Obstacle& obstacle : task_.obstacles) {
      const Units begin = std::max(units(obstacle.begin_bytes), model_.base);
      const Units end = units(obstacle.end_bytes);
      if (end <= begin) continue;
      model_.pinned.push_back({.first_slot = slot(obstacle.first_slot),
                               .end_slot = slot(obstacle.end_slot),
                               .begin = begin,
                               .size = end - begin});
    }
    std::sort(model_.pinned.begin(), model_.pinned.end(),
              [](const PinnedBox& a, const PinnedBox& b) {
                return std::tie(b.begin, a.first_slot) < std::tie(a.begin, b.first_slot);
              });
  }

  void add_box(int32_t index) {
    const Box& box = box_at(index);
    const bool aligned = model_.unit_bytes % box.alignment_bytes == 0;
    SearchBox added{.first_slot = slot(box.first_slot),
                    .end_slot = slot(box.end_slot),
                    .size = units(box.size_bytes),
                    .alignment = aligned ? 1 : units(box.alignment_bytes)};
    add_blocks(added);
    const auto number = static_cast<int32_t>(model_.boxes.size());
    const std::tuple span(added.first_slot, added.end_slot, added.alignment);
    added.span = spans_.try_emplace(span, model_.span_count).first->second;
    model_.span_count = static_cast<int32_t>(spans_.size());
    const auto [twin, first] = twins_.try_emplace(std::pair(added.span, added.size), number);
    if (!first) added.twin = std::exchange(twin->second, number);
    model_.boxes.push_back(added);
    model_.task_index.push_back(index);
  }

  void list_alive() {
    std::vector<std::vector<int32_t>> alive(static_cast<size_t>(model_.slot_count));
    for (size_t i = 0; i < model_.boxes.size(); ++i) {
      const SearchBox& box = model_.boxes[i];
      for (int32_t slot = box.first_slot; slot < box.end_slot; ++slot) {
        alive[static_cast<size_t>(slot)].push_back(static_cast<int32_t>(i));
      }
    }
    for (const std::vector<int32_t>& boxes : alive) {
      model_.first_alive.push_back(model_.alive.size());
      model_.alive.insert(model_.alive.end(), boxes.begin(), boxes.end());
    }
    model_.first_alive.push_back(model_.alive.size());
  }

  // Obstacles of the box's lifetime, merged where they touch.
  void add_blocks(SearchBox& box) {
    box.first_block = static_cast<int32_t>(model_.blocks.size());
    for (size_t i = model_.pinned.size(); i-- > 0;) {
      const PinnedBox& pinned = model_.pinned[i];
      if (pinned.end_slot <= box.first_slot || pinned.first_slot >= box.end_slot) continue;
      const Block block{.begin = pinned.begin, .end = pinned.begin + pinned.size};
      const bool fresh = static_cast<size_t>(box.first_block) == model_.blocks.size() ||
                         block.begin > model_.blocks.back().end;
      if (fresh) {
        model_.blocks.push_back(block);
      } else {
        model_.blocks.back().end = std::max(model_.blocks.back().end, block.end);
      }
    }
    box.end_block = static_cast<int32_t>(model_.blocks.size());
  }

  const Task& task_;
  std::vector<int32_t> kept_before_;
  SearchModel model_;
  std::map<std::tuple<int32_t, int32_t, Units>, int32_t> spans_;
  std::map<std::pair<int32_t, Units>, int32_t> twins_;  // the latest box of each kind
};

}  // namespace

Units SearchModel::lowest(const SearchBox& box, Units from) const {
  const auto aligned = [&](Units address) {
    const Units past = box.alignment == 1 ? 0 : address % box.alignment;
    return past == 0 ? address : address + (box.alignment - past);
  };
  Units address = aligned(from);
  for (int32_t i = box.first_block; i < box.end_block; ++i) {
    const Block& block = blocks[static_cast<size_t>(i)];
    if (address + box.size <= block.begin) break;
    if (address < block.end) address = aligned(block.end);
  }
  return address;
}

std::optional<SearchModel> make_search_model(const Task& task, int64_t highest_bytes) {
  if (task.boxes.empty()) return {};
  const int64_t unit = unit_bytes_of(task);
  int64_t highest = highest_bytes;
  for (const Obstacle& obstacle : task.obstacles) highest = std::max(highest, obstacle.end_bytes);
  int64_t strictest = 0;
  for (const Box& box : task.boxes) strictest = std::max(strictest, box.alignment_bytes);
  if ((highest + strictest) / unit >= kLargestAddress) return {};
  return ModelBuilder(task).build();
}

}  // namespace trainscope::memplan
