// What the passes did to a node, and the nodes of the ONNX model that it stems from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/passes/fate.h"
#include "gui/views/inspection_rows.h"

namespace trainscope::gui {

// A note for each thing that passes did to a node of the graph, and why, up to this stage.
void add_history(InspectionBuilder& rows, std::string_view heading, std::uint32_t serial,
                 std::size_t last_stage);
// Links to nodes of the ONNX model, what became of each, and why.
void add_sources(InspectionBuilder& rows, std::span<const std::string_view> names);

}  // namespace trainscope::gui
