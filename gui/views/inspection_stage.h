// Nodes as the graphs of stages have them: the plan has those of the last stage alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/ir/graph.h"
#include "gui/data/run_data.h"
#include "gui/views/inspection_rows.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

struct StageNode {
  std::size_t stage = 0;         // a position in the run's stages
  const Graph* graph = nullptr;  // the run's
  const Node* node = nullptr;    // never null
};

// As the shown stage (a Selection's) has it, or else the last one that does. Nothing where there
// was none, or the stage cannot be read.
std::optional<StageNode> find_stage_node(RunData& run, std::int32_t shown, std::uint32_t serial);

// Of a node that the plan does not have; the stage where it was found is the shown one then.
// Nothing is selected where there is none.
Selection select_unplanned_node(RunData& run, const Selection& from, std::uint32_t serial);

// All that its stage, and the stages before and after, say of it.
void inspect_stage_node(InspectionBuilder& rows, const StageNode& at);
// FLOPs, bytes, inputs and outputs with dtypes and shapes, as the stage has them.
void add_stage_work(InspectionBuilder& rows, const StageNode& at);
// The inputs and outputs alone, where they differ from those of the last stage.
void add_stage_operands(InspectionBuilder& rows, const StageNode& at);

}  // namespace trainscope::gui
