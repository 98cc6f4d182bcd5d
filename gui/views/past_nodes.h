// Nodes that a pass made and a later one took away: neither the ONNX model nor the program has
// them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/views/plan_links.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

struct PastNode {
  std::string name = {};  // in the last stage that has it
  std::size_t stage = 0;  // the position of that
  std::string fate = {};  // "inside, 27-fuse_norm_grad_add; made by 24-differentiate"
};
// In the order in which they went; none without rewrite logs.
std::vector<PastNode> past_nodes(RunData& run);

// A node by its name in a stage (a position), with that stage; nothing is selected where the stage
// has none. `links` null: there is no plan.
Selection select_stage_node(RunData& run, Selection from, std::size_t stage, std::string_view name,
                            const PlanLinks* links);

}  // namespace trainscope::gui
