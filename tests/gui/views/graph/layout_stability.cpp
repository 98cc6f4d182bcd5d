// Compares two layouts by the nodes that are in both.
#include "tests/gui/views/graph/layout_stability.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace trainscope::gui::test {
namespace {

struct Survivor {
  std::pair<std::int32_t, std::int32_t> before;  // row and lane
  std::pair<std::int32_t, std::int32_t> after;
};

// The length of the longest subsequence that ascends (patience sorting).
std::size_t longest_ascent(const std::vector<Survivor>& column) {
  std::vector<std::pair<std::int32_t, std::int32_t>> tails;
  for (const Survivor& survivor : column) {
    const auto at = std::ranges::lower_bound(tails, survivor.after);
    if (at == tails.end()) {
      tails.push_back(survivor.after);
    } else {
      *at = survivor.after;
    }
  }
  return tails.size();
}

std::int32_t row_distance(const Survivor& a, const Survivor& b) {
  return std::abs(a.before.first - b.before.first);
}

// How far two drifted apart or together, in rows.
std::int32_t drift(const Survivor& a, const Survivor& b) {
  return std::abs((a.after.first - b.after.first) - (a.before.first - b.before.first));
}

std::size_t near_rows(const std::vector<Survivor>& column) {
  std::size_t near = 0;
  for (std::size_t i = 0; i < column.size(); ++i) {
    const Survivor* nearest = nullptr;
    for (const std::size_t j : {i - 1, i + 1}) {
      if (j >= column.size()) continue;
      const bool nearer = nearest == nullptr ||
                          row_distance(column[j], column[i]) < row_distance(*nearest, column[i]);
      if (nearer) nearest = &column[j];
    }
    if (nearest == nullptr || drift(*nearest, column[i]) <= 1) ++near;
  }
  return near;
}

}  // namespace

LayoutStability stability_of(const GraphPicture& before, const GraphLayout& layout_before,
                             const GraphPicture& after, const GraphLayout& layout_after) {
  LayoutStability stability;
  std::map<std::pair<std::uint32_t, Column>, std::vector<Survivor>> columns;
  for (std::uint32_t i = 0; i < before.nodes.size(); ++i) {
    const std::uint32_t j = after.find(before.nodes[i].serial);
    if (j == kNoPlace) continue;
    ++stability.survivors;
    const LaidNode& was = layout_before.nodes[i];
    const LaidNode& is = layout_after.nodes[j];
    const bool stayed = was.column == is.column &&
                        layout_before.blocks[was.block].name == layout_after.blocks[is.block].name;
    if (!stayed) continue;
    columns[{was.block, was.column}].push_back(
        {.before = {was.row, was.lane}, .after = {is.row, is.lane}});
  }
  for (auto& [key, column] : columns) {
    std::ranges::sort(column, {}, &Survivor::before);
    stability.in_order += longest_ascent(column);
    stability.near_rows += near_rows(column);
  }
  return stability;
}

}  // namespace trainscope::gui::test
