// Rows by the longest path within a block's column, in the order that the stage before had; lanes
// within a row as the stage before had them or else by the mean of what a node reads.
#include "gui/views/graph/graph_layout.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace trainscope::gui {
namespace {

constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();

class Layouter {
 public:
  Layouter(const GraphPicture& picture, LayoutMemory& memory, const CollapsedBlocks& collapsed)
      : picture_(picture),
        memory_(memory),
        collapsed_(collapsed),
        blocks_(blocks_of(picture, memory.blocks)),
        group_(picture.nodes.size()),
        rank_(picture.nodes.size(), 0),
        x_(picture.nodes.size(), 0.0f) {
    layout_.nodes.resize(picture.nodes.size());
  }

  GraphLayout lay() {
    for (std::uint32_t i = 0; i < picture_.nodes.size(); ++i) {
      const Column column = picture_.nodes[i].column;
      layout_.nodes[i].column = column;
      group_[i] =
          blocks_.of[i] * static_cast<std::uint32_t>(kColumns) + static_cast<std::uint32_t>(column);
    }
    rank_nodes();
    collect_groups();
    place_groups();
    stack_blocks();
    remember();
    return std::move(layout_);
  }

 private:
  // Where each node is in the order of rows and lanes of the stage before, group by group; below 0:
  // it is new.
  std::vector<std::int32_t> remembered_order() const {
    std::vector<std::pair<std::uint32_t, LayoutMemory::Place>> places(picture_.nodes.size());
    std::vector<std::uint32_t> old;
    for (std::uint32_t i = 0; i < places.size(); ++i) {
      const auto remembered = memory_.places.find(picture_.nodes[i].serial);
      if (remembered == memory_.places.end()) continue;
      places[i] = {group_[i], remembered->second};
      const bool flows_up = picture_.nodes[i].column == Column::kBackward;
      if (flows_up) places[i].second.x *= -1.0f;  // rows are turned over, lanes are not
      old.push_back(i);
    }
    std::ranges::stable_sort(old, [&](std::uint32_t a, std::uint32_t b) {
      const auto& [group_a, place_a] = places[a];
      const auto& [group_b, place_b] = places[b];
      return std::tuple(group_a, place_a.row, place_a.x) <
             std::tuple(group_b, place_b.row, place_b.x);
    });
    std::vector<std::int32_t> order(places.size(), -1);
    for (std::size_t k = 0; k < old.size(); ++k) order[old[k]] = static_cast<std::int32_t>(k);
    return order;
  }

  // The nodes in an order in which each follows what it reads and, if it keeps its place among the
  // others of its group, all that stood before it. What now reads something that stood behind it
  // keeps none.
  std::vector<std::uint32_t> order_to_rank() {
    const std::vector<std::int32_t> order = remembered_order();
    std::vector<std::int32_t> reach(order.size(), -1);  // the last of `order` that it follows
    keeps_.assign(order.size(), false);
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      for (const PictureEdge& edge : picture_.inputs_of(i)) {
        if (group_[edge.from] == group_[i]) reach[i] = std::max(reach[i], reach[edge.from]);
      }
      keeps_[i] = order[i] > reach[i];
      if (keeps_[i]) reach[i] = order[i];
    }
    std::vector<std::uint32_t> sequence(order.size());
    std::iota(sequence.begin(), sequence.end(), 0U);
    std::ranges::stable_sort(sequence, {},
                             [&](std::uint32_t i) { return std::pair(reach[i], !keeps_[i]); });
    return sequence;
  }

  // A rank is at least one more than the greatest of what is read in the same group, and the row
  // that the node had in the stage before: what is gone leaves a row that closes if nobody else has
  // it. Who moves takes along what stood behind it.
  void rank_nodes() {
    std::vector<bool> stands_free(picture_.nodes.size(),
                                  false);  // new, and reads nothing of its group
    std::uint32_t last = kNoPlace;         // that keeps its place
    std::int32_t last_row = 0;             // where it was
    for (const std::uint32_t i : order_to_rank()) {
      const auto remembered = memory_.places.find(picture_.nodes[i].serial);
      const bool is_new = remembered == memory_.places.end();
      if (!is_new) rank_[i] = remembered->second.row;
      if (keeps_[i]) {
        const std::int32_t row = rank_[i];
        const bool follows = last != kNoPlace && group_[last] == group_[i];
        if (follows) rank_[i] = std::max(row, rank_[last] + (row == last_row ? 0 : 1));
        last_row = row;
        last = i;
      }
      stands_free[i] = is_new;
      for (const PictureEdge& edge : picture_.inputs_of(i)) {
        if (group_[edge.from] != group_[i]) continue;
        stands_free[i] = false;
        rank_[i] = std::max(rank_[i], rank_[edge.from] + 1);
      }
    }
    put_before_readers(stands_free);
  }

  // What stands free goes right before who reads it.
  void put_before_readers(const std::vector<bool>& stands_free) {
    std::vector<std::int32_t> least_reader(stands_free.size(), kNoRank);
    for (const PictureEdge& edge : picture_.edges) {
      if (group_[edge.from] != group_[edge.to]) continue;
      least_reader[edge.from] = std::min(least_reader[edge.from], rank_[edge.to]);
    }
    for (std::size_t i = 0; i < stands_free.size(); ++i) {
      if (stands_free[i] && least_reader[i] != kNoRank) rank_[i] = least_reader[i] - 1;
    }
  }

  // Members of each group by rank, within a rank in the order of execution.
  void collect_groups() {
    members_.resize(blocks_.names.size() * kColumns);
    for (std::uint32_t i = 0; i < group_.size(); ++i) members_[group_[i]].push_back(i);
    for (std::vector<std::uint32_t>& group : members_) {
      std::ranges::stable_sort(group, {}, [this](std::uint32_t i) { return rank_[i]; });
    }
  }

  void place_groups() {
    rows_.resize(members_.size());
    lanes_.resize(members_.size());
    for (std::size_t g = 0; g < members_.size(); ++g) {
      std::vector<std::uint32_t>& group = members_[g];
      std::int32_t row = 0;
      for (std::size_t begin = 0; begin < group.size();) {
        std::size_t end = begin;
        while (end < group.size() && rank_[group[end]] == rank_[group[begin]]) ++end;
        row = place_rank(std::span(group).subspan(begin, end - begin), row, lanes_[g]);
        begin = end;
      }
      rows_[g] = row;
      if (static_cast<Column>(g % kColumns) == Column::kBackward) turn_over(group, row);
    }
  }

  // Rows from `row` on; returns the one behind them.
  std::int32_t place_rank(std::span<std::uint32_t> rank, std::int32_t row, std::int32_t& lanes) {
    if (rank.size() > 1) order_rank(rank);
    for (std::size_t begin = 0; begin < rank.size(); begin += kMostLanes) {
      const std::size_t count = std::min<std::size_t>(kMostLanes, rank.size() - begin);
      for (std::size_t lane = 0; lane < count; ++lane) {
        const std::uint32_t i = rank[begin + lane];
        layout_.nodes[i].row = row;
        layout_.nodes[i].lane = static_cast<std::int32_t>(lane);
        x_[i] = (static_cast<float>(lane) - static_cast<float>(count - 1) / 2.0f) * kLanePitch;
      }
      lanes = std::max(lanes, static_cast<std::int32_t>(count));
      ++row;
    }
    return row;
  }

  // As the stage before had them, row by row; what is new stands in the first of these rows.
  void order_rank(std::span<std::uint32_t> rank) {
    std::vector<std::pair<LayoutMemory::Place, std::uint32_t>> keyed;
    std::int32_t first_row = kNoRank;
    for (const std::uint32_t i : rank) {
      const auto remembered = memory_.places.find(picture_.nodes[i].serial);
      const bool is_new = remembered == memory_.places.end();
      keyed.emplace_back(
          is_new ? LayoutMemory::Place{.row = kNoRank, .x = mean_of_inputs(i)} : remembered->second,
          i);
      first_row = std::min(first_row, keyed.back().first.row);
    }
    for (auto& [place, i] : keyed) {
      if (place.row == kNoRank) place.row = first_row;
    }
    std::ranges::stable_sort(keyed, [](const auto& a, const auto& b) {
      return std::pair(a.first.row, a.first.x) < std::pair(b.first.row, b.first.x);
    });
    std::ranges::transform(keyed, rank.begin(), [](const auto& entry) { return entry.second; });
  }

  float mean_of_inputs(std::uint32_t i) const {
    float sum = 0.0f;
    int count = 0;
    for (const PictureEdge& edge : picture_.inputs_of(i)) {
      if (group_[edge.from] != group_[i]) continue;
      sum += x_[edge.from];
      ++count;
    }
    return count == 0 ? 0.0f : sum / static_cast<float>(count);
  }

  // The backward pass flows up.
  void turn_over(const std::vector<std::uint32_t>& group, std::int32_t rows) {
    for (const std::uint32_t i : group) layout_.nodes[i].row = rows - 1 - layout_.nodes[i].row;
  }

  std::vector<std::uint32_t> block_order() {
    double last = 0.0;
    std::vector<double> key;
    for (const std::string& name : blocks_.names) {
      const auto [entry, is_new] = memory_.block_order.try_emplace(name, last + 1.0);
      // A block that a later stage adds stands right behind the one that it follows.
      if (is_new && memory_.block_order.size() > blocks_.names.size()) entry->second = last + 1e-3;
      last = entry->second;
      key.push_back(entry->second);
    }
    std::vector<std::uint32_t> order(blocks_.names.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t b) { return key[b]; });
    return order;
  }

  void place_columns() {
    float x = kBlockPadding;
    for (std::size_t column = 0; column < kColumns; ++column) {
      std::int32_t lanes = 0;
      for (std::size_t b = 0; b < blocks_.names.size(); ++b) {
        if (!collapsed_.contains(blocks_.names[b])) {
          lanes = std::max(lanes, lanes_[b * kColumns + column]);
        }
      }
      if (lanes > 0 && x > kBlockPadding) x += kColumnGap;
      layout_.column_x[column] = x;
      layout_.column_width[column] = static_cast<float>(lanes) * kLanePitch;
      x += layout_.column_width[column];
    }
    layout_.width = std::max(x + kBlockPadding, 2.0f * kLanePitch + kColumnGap);
  }

  void stack_blocks() {
    place_columns();
    float y = 0.0f;
    for (const std::uint32_t b : block_order()) {
      LaidBlock block{.name = blocks_.names[b], .collapsed = collapsed_.contains(blocks_.names[b])};
      std::int32_t most_rows = 0;
      for (std::size_t column = 0; column < kColumns; ++column) {
        const std::size_t g = b * kColumns + column;
        block.rows[column] = rows_[g];
        block.nodes[column] = static_cast<std::int32_t>(members_[g].size());
        most_rows = std::max(most_rows, rows_[g]);
      }
      const float body = block.collapsed ? 0.0f : static_cast<float>(most_rows) * kRowPitch;
      block.rect = {.x = 0.0f, .y = y, .width = layout_.width, .height = kBlockHeader + body};
      for (std::size_t column = 0; column < kColumns; ++column) {
        const float rows = static_cast<float>(column == 1 ? most_rows - block.rows[column] : 0);
        put(members_[b * kColumns + column], y + kBlockHeader + rows * kRowPitch, block);
      }
      y = block.rect.bottom() + kBlockGap;
      layout_.blocks.push_back(std::move(block));
    }
    layout_.height = std::max(0.0f, y - kBlockGap);
  }

  // `top` is that of the first row. Members stay in the order of rows and lanes.
  void put(std::vector<std::uint32_t>& group, float top, LaidBlock& block) {
    const auto at = static_cast<std::uint32_t>(layout_.blocks.size());
    std::ranges::sort(group, {}, [this](std::uint32_t i) {
      return std::pair(layout_.nodes[i].row, layout_.nodes[i].lane);
    });
    for (const std::uint32_t i : group) {
      LaidNode& node = layout_.nodes[i];
      const auto column = static_cast<std::size_t>(node.column);
      node.block = at;
      if (block.collapsed) {
        node.x = kLanePitch / 2.0f - kNodeWidth / 2.0f;
        node.y = block.rect.y;
      } else {
        node.x = layout_.column_x[column] + layout_.column_width[column] / 2.0f + x_[i] -
                 kNodeWidth / 2.0f;
        node.y = top + static_cast<float>(node.row) * kRowPitch;
      }
      block.places.push_back(i);
    }
  }

  void remember() {
    for (std::size_t i = 0; i < picture_.nodes.size(); ++i) {
      const LaidNode& node = layout_.nodes[i];
      const bool flows_up = node.column == Column::kBackward;
      memory_.places[picture_.nodes[i].serial] = {
          .row = flows_up ? rows_[group_[i]] - 1 - node.row : node.row, .x = x_[i]};
    }
  }

  const GraphPicture& picture_;
  LayoutMemory& memory_;
  const CollapsedBlocks& collapsed_;
  Blocks blocks_;
  std::vector<std::uint32_t> group_;  // by place: block and column
  std::vector<std::int32_t> rank_;
  std::vector<bool> keeps_;                          // its place among those of the stage before
  std::vector<float> x_;                             // of a node's middle, from that of its column
  std::vector<std::vector<std::uint32_t>> members_;  // by group
  std::vector<std::int32_t> rows_;                   // by group
  std::vector<std::int32_t> lanes_;
  GraphLayout layout_;
};

}  // namespace

GraphLayout layout_graph(const GraphPicture& picture, LayoutMemory& memory,
                         const CollapsedBlocks& collapsed) {
  return Layouter(picture, memory, collapsed).lay();
}

}  // namespace trainscope::gui
