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

// A node that a pass, or the import, took away, or gave another name.
struct GoneNode {
  std::string name = {};
  std::string op = {};                    // empty: the import did not keep it
  std::string fate = {};                  // "inside, 07-fuse_gelu"
  std::vector<std::string> readers = {};  // ops of the imported nodes that read its results
};
// In the order of the model; without those that are there still, under their names.
std::vector<GoneNode> gone_nodes(RunData& run);

// A node of the model by its name there; nothing is selected where the model has none.
Selection select_model_node(RunData& run, Selection from, std::string_view name);

// "'/gelu/Mul', '/gelu/Add'": of many the first.
std::string names_of(const std::vector<NamedThing>& things);
// "inside, 07-fuse_gelu".
std::string brief_fate(const History& history, const Fate& fate);
// "/gelu/Mul: inside '/gelu/Gelu' by 07-fuse_gelu: ...".
std::string fate_sentence(const History& history, const Fate& fate);

// What it became, what it is now, by which pass and why.
void add_fate(InspectionBuilder& rows, const History& history, const Fate& fate);
// ... and what it is in the shown stage (a Selection's), or the last one that has it.
void inspect_model_node(InspectionBuilder& rows, const Fate& fate, std::int32_t shown_stage);

}  // namespace trainscope::gui
