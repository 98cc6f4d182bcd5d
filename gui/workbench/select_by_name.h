// Selections as text: KIND:NAME, for command lines, bookmarks and the palette.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gui/data/run_data.h"
#include "gui/views/plan_links.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

// "node:NAME", "value:NAME", "kernel:NAME", "call:ID", "buffer:ID", "stage:LABEL", "step:N",
// "model:NAME": a node of the ONNX model, "node@LABEL:NAME": one of a stage; a name alone is looked
// for among nodes, values, kernels, stages, and nodes of the model. `links` null: there is no plan.
std::optional<Selection> selection_named(std::string_view text, Selection from, RunData& run,
                                         const PlanLinks* links);

// What of the selection has a name, the most special of it first; empty where nothing is selected.
std::string name_of_selection(const Selection& selection, const PlanLinks* links);

}  // namespace trainscope::gui
