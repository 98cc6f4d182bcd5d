// What the pass of a stage nearly rewrote, where its nodes stand in the stage's graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/bundle/format.h"
#include "gui/views/graph/graph_layout.h"

namespace trainscope::gui {

struct NearMissGroup {
  std::vector<std::uint32_t> places = {};  // of its nodes that are there; never empty
  std::string pass = {};
  std::string reason = {};
};

// In the order of the record; those without a node in the graph that the pass has left are not
// among them.
std::vector<NearMissGroup> near_misses_in(const GraphPicture& picture, const StageRecord& stage);

// Around nodes as they are placed: around its block where that hides one.
LayoutRect rect_around(const GraphLayout& layout, std::span<const std::uint32_t> places);

// "fuse_softmax nearly rewrote 3 nodes: 'x' has 2 readers".
std::string sentence_of(const NearMissGroup& miss);

}  // namespace trainscope::gui
