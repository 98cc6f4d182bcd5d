// Nodes of the ONNX model that are not in the program as such: what became of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/views/inspection_rows.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

// A node that a pass, or the import, took away.
struct GoneNode {
  std::string name = {};
  std::string op = {};    // empty: the import did not keep it
  std::string fate = {};  // "inside, 07-fuse_gelu"
};
// In the order of the model; without those that are there still, under whatever name.
std::vector<GoneNode> gone_nodes(RunData& run);

// A node of the model by its name there; nothing is selected where the model has none.
Selection select_model_node(RunData& run, Selection from, std::string_view name);

// "/gelu/Mul: inside '/gelu/Gelu' by 07-fuse_gelu: ...".
std::string fate_sentence(const History& history, const Fate& fate);

void inspect_model_node(InspectionBuilder& rows, const Fate& fate);

}  // namespace trainscope::gui
