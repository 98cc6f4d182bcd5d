// Places of a stage's nodes in the layout of another.
#include "gui/views/graph/stage_step.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainscope::gui {
namespace {

constexpr std::size_t kMostGhosts = 400;  // more of them are a thicket

// From the layout before to the one after: blocks and columns have moved.
class Moved {
 public:
  Moved(const GraphLayout& before, const GraphLayout& after) : before_(before), after_(after) {
    for (const LaidBlock& block : after.blocks) tops_.emplace(block.name, block.rect.y);
  }
  LayoutPoint of(std::uint32_t place) const {
    const LaidNode& node = before_.nodes[place];
    const LaidBlock& block = before_.blocks[node.block];
    const auto top = tops_.find(block.name);
    const auto column = static_cast<std::size_t>(node.column);
    return {node.x + after_.column_x[column] - before_.column_x[column],
            top == tops_.end() ? node.y : node.y + top->second - block.rect.y};
  }

 private:
  const GraphLayout& before_;
  const GraphLayout& after_;
  std::unordered_map<std::string, float> tops_;
};

std::unordered_map<std::uint32_t, const DiffRow*> rows_of_nodes(const StageDiff* diff) {
  std::unordered_map<std::uint32_t, const DiffRow*> rows;
  if (diff == nullptr) return rows;
  for (const DiffRow& row : diff->rows) {
    if (row.thing.is_node) rows.emplace(static_cast<std::uint32_t>(row.thing.serial), &row);
  }
  return rows;
}

void tell_fate_of(GraphGhost& ghost, const DiffRow& row, const GraphPicture& after) {
  ghost.fate = row.kind;
  for (const NamedThing& other : row.others) {
    const std::uint32_t place =
        other.is_node ? after.find(static_cast<std::uint32_t>(other.serial)) : kNoPlace;
    if (place == kNoPlace) continue;
    ghost.heir = place;
    ghost.fate = fmt::format("{} {}", row.kind, other.name);
    return;
  }
}

}  // namespace

StageStep step_between(const GraphPicture& before, const GraphLayout& layout_before,
                       const GraphPicture& after, const GraphLayout& layout_after,
                       const StageDiff* diff) {
  StageStep step;
  const Moved moved(layout_before, layout_after);
  const auto rows = rows_of_nodes(diff);
  for (std::uint32_t i = 0; i < before.nodes.size(); ++i) {
    const PictureNode& node = before.nodes[i];
    const std::uint32_t now = after.find(node.serial);
    if (now != kNoPlace) {
      step.before.emplace(now, moved.of(i));
      continue;
    }
    if (layout_before.is_hidden(i) || step.ghosts.size() >= kMostGhosts) continue;
    GraphGhost ghost{.name = std::string(node.name), .op = std::string(node.op), .at = moved.of(i)};
    const auto row = rows.find(node.serial);
    if (row != rows.end()) tell_fate_of(ghost, *row->second, after);
    step.ghosts.push_back(std::move(ghost));
  }
  return step;
}

GraphLayout layout_on_its_way(const GraphLayout& layout, const StageStep& step, float share) {
  GraphLayout moving = layout;
  for (const auto& [place, from] : step.before) {
    LaidNode& node = moving.nodes[place];
    node.x = from.x + (node.x - from.x) * share;
    node.y = from.y + (node.y - from.y) * share;
  }
  return moving;
}

float advance_step(StageStep& step, double seconds, bool reduced_motion) {
  if (step.empty()) return 1.0F;
  if (step.began < 0.0) step.began = seconds;
  const double age = seconds - step.began;
  if (age >= kGhostSeconds) step = {};
  if (step.empty() || reduced_motion) return 1.0F;
  const auto share = static_cast<float>(std::min(1.0, age / kMoveSeconds));
  return share * share * (3.0F - 2.0F * share);
}

}  // namespace trainscope::gui
