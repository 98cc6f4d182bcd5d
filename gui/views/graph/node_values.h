// What nodes are coloured by: their time, bytes, share of the roof, op or pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/machine/machine.h"
#include "gui/views/graph/graph_picture.h"
#include "gui/views/op_class.h"
#include "gui/views/plan_links.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::gui {

enum class ColorBy : std::uint8_t { kOp, kTime, kBytes, kRoof, kPass };
inline constexpr std::size_t kColorings = 5;
// "op", "time", "bytes", "roof", "pass".
std::string_view name_of(ColorBy coloring);

struct NodeValue {
  // Of kOp a place in the legend of op classes, of kPass a position in NodeValues::passes, else 0.
  std::uint32_t category = 0;
  double value = 0.0;  // ms of a step, bytes of its results, or a share; NaN: not known
  float shade = 0.0f;  // 0 to 1: of the greatest value, by its logarithm
};

struct NodeValues {
  std::vector<NodeValue> nodes = {};     // by place in the picture
  std::vector<std::string> passes = {};  // that with the most nodes first
  double greatest = 0.0;
  std::uint32_t greatest_at = 0;  // the place of its node
};

// What a plan, times and a machine say about it; each may be absent (null).
struct NodeFacts {
  const PlanLinks* links = nullptr;
  const profiler::StepTimes* times = nullptr;
  const Machine* machine = nullptr;
};
NodeValues node_values(const GraphPicture& picture, ColorBy coloring, const NodeFacts& facts);

// Mean of a step, of all calls of a node (a position in the plan); NaN: not known.
double node_ms(const NodeFacts& facts, std::uint32_t node);
// What its calls would take at the roofs of the machine by what they take; NaN: not known.
double node_roof(const NodeFacts& facts, std::uint32_t node);
// Of its results, in the plan; NaN: not known.
double node_bytes(const NodeFacts& facts, std::uint32_t node);

}  // namespace trainscope::gui
