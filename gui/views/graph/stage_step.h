// From one stage to the next: nodes go to their new places, and those that are not there any more
// stay a moment as dashed ghosts, with a line to what does their work now.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/stage_history.h"
#include "gui/views/graph/graph_layout.h"

namespace trainscope::gui {

inline constexpr double kMoveSeconds = 0.4;   // of nodes to their places
inline constexpr double kGhostSeconds = 1.6;  // that ghosts are seen

struct LayoutPoint {
  float x = 0.0f;
  float y = 0.0f;
};

struct GraphGhost {
  std::string name = {};
  std::string op = {};
  std::string fate = {};  // "inside Gelu", "dead"
  LayoutPoint at = {};    // of the layout: its left upper corner
  std::uint32_t heir = kNoPlace;
};

struct StageStep {
  std::vector<GraphGhost> ghosts = {};
  std::unordered_map<std::uint32_t, LayoutPoint> before = {};  // where nodes stood, by place
  double began = -1.0;  // seconds of the program; < 0: not yet

  bool empty() const { return ghosts.empty() && before.empty(); }
};

// `diff` is of the two stages, the earlier one first; null: not known.
StageStep step_between(const GraphPicture& before, const GraphLayout& layout_before,
                       const GraphPicture& after, const GraphLayout& layout_after,
                       const StageDiff* diff);
// How far nodes are on their way: 1 where they are there. Forgets the step when it was seen.
float advance_step(StageStep& step, double seconds, bool reduced_motion);
// The layout with nodes on their way: `share` 0 is where they stood, 1 where they are now.
GraphLayout layout_on_its_way(const GraphLayout& layout, const StageStep& step, float share);

}  // namespace trainscope::gui
