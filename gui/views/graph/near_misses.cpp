// Finds nodes by their names, and the rectangle around them.
#include "gui/views/graph/near_misses.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "engine/core/text.h"

namespace trainscope::gui {
namespace {

LayoutRect rect_of(const GraphLayout& layout, std::uint32_t place) {
  const LaidNode& node = layout.nodes[place];
  if (layout.is_hidden(place)) return layout.blocks[node.block].rect;
  return {.x = node.x, .y = node.y, .width = kNodeWidth, .height = kNodeHeight};
}

LayoutRect united(const LayoutRect& a, const LayoutRect& b) {
  const float x = std::min(a.x, b.x);
  const float y = std::min(a.y, b.y);
  return {.x = x,
          .y = y,
          .width = std::max(a.right(), b.right()) - x,
          .height = std::max(a.bottom(), b.bottom()) - y};
}

}  // namespace

std::vector<NearMissGroup> near_misses_in(const GraphPicture& picture, const StageRecord& stage) {
  if (stage.near_misses.empty()) return {};
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < picture.nodes.size(); ++i) {
    by_name.emplace(picture.nodes[i].name, i);
  }
  std::vector<NearMissGroup> misses;
  for (const NearMissRecord& record : stage.near_misses) {
    NearMissGroup miss{.pass = stage.name, .reason = record.reason};
    for (const std::string& node : record.nodes) {
      const auto found = by_name.find(node);
      if (found != by_name.end()) miss.places.push_back(found->second);
    }
    if (!miss.places.empty()) misses.push_back(std::move(miss));
  }
  return misses;
}

LayoutRect rect_around(const GraphLayout& layout, std::span<const std::uint32_t> places) {
  LayoutRect around = rect_of(layout, places.front());
  for (const std::uint32_t place : places.subspan(1)) {
    around = united(around, rect_of(layout, place));
  }
  return around;
}

std::string sentence_of(const NearMissGroup& miss) {
  return fmt::format("{} nearly rewrote {} {}: {}", printable(miss.pass), miss.places.size(),
                     miss.places.size() == 1 ? "node" : "nodes", printable(miss.reason, 400));
}

}  // namespace trainscope::gui
