// Sums over the calls of each node.
#include "gui/views/graph/node_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "profiler/analysis/roof.h"

namespace trainscope::gui {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool has_times(const NodeFacts& facts) {
  return facts.links != nullptr && facts.times != nullptr && !facts.times->steps.empty();
}

// Of the driving thread, in all steps.
double sum_ns(const NodeFacts& facts, std::uint32_t node) {
  double ns = 0.0;
  for (const std::uint32_t call : facts.links->calls_of_node(node)) {
    if (call < facts.times->calls.size()) {
      ns += static_cast<double>(facts.times->calls[call].sum());
    }
  }
  return ns;
}

double value_of(ColorBy coloring, const NodeFacts& facts, std::uint32_t node) {
  if (node == kNoRow) return kUnknown;
  if (coloring == ColorBy::kTime) return node_ms(facts, node);
  if (coloring == ColorBy::kBytes) return node_bytes(facts, node);
  return node_roof(facts, node);
}

void shade(NodeValues& values, bool by_logarithm) {
  for (std::uint32_t i = 0; i < values.nodes.size(); ++i) {
    if (!(values.nodes[i].value > values.greatest)) continue;
    values.greatest = values.nodes[i].value;
    values.greatest_at = i;
  }
  if (values.greatest <= 0.0) return;
  constexpr double kDecades = 4.0;  // that shades tell apart
  for (NodeValue& node : values.nodes) {
    if (!(node.value > 0.0)) continue;
    const double share = node.value / values.greatest;
    const double shade = by_logarithm ? 1.0 + std::log10(share) / kDecades : share;
    node.shade = static_cast<float>(std::clamp(shade, 0.0, 1.0));
  }
}

// Passes by how many nodes each has made, of as many the one that comes first in the picture.
void number_passes(const GraphPicture& picture, NodeValues& values) {
  struct Pass {
    std::string_view name = {};
    std::size_t nodes = 0;
  };
  std::vector<Pass> passes;
  for (const PictureNode& node : picture.nodes) {
    const auto found = std::ranges::find(passes, std::string_view(node.pass), &Pass::name);
    Pass& pass = found == passes.end() ? passes.emplace_back(Pass{.name = node.pass}) : *found;
    ++pass.nodes;
  }
  std::ranges::stable_sort(passes, std::ranges::greater(), &Pass::nodes);
  std::unordered_map<std::string_view, std::uint32_t> places;
  for (const Pass& pass : passes) {
    places.emplace(pass.name, static_cast<std::uint32_t>(values.passes.size()));
    values.passes.emplace_back(pass.name);
  }
  for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
    values.nodes[i].category = places.at(picture.nodes[i].pass);
  }
}

}  // namespace

std::string_view name_of(ColorBy coloring) {
  static constexpr std::array<std::string_view, kColorings> kNames = {"op", "time", "bytes", "roof",
                                                                      "pass"};
  return kNames[static_cast<std::size_t>(coloring)];
}

double node_ms(const NodeFacts& facts, std::uint32_t node) {
  if (!has_times(facts)) return kUnknown;
  return sum_ns(facts, node) / 1e6 / static_cast<double>(facts.times->steps.size());
}

double node_roof(const NodeFacts& facts, std::uint32_t node) {
  if (!has_times(facts) || facts.machine == nullptr) return kUnknown;
  double roof = 0.0;
  for (const std::uint32_t call : facts.links->calls_of_node(node)) {
    if (call >= facts.times->calls.size()) continue;
    const profiler::CallTime& time = facts.times->calls[call];
    const PlanView& plan = facts.links->plan();
    roof += profiler::roof_ns(*facts.machine, plan, plan.calls[call], time.rows) *
            static_cast<double>(time.runs);
  }
  const double taken = sum_ns(facts, node);
  return taken == 0.0 ? kUnknown : roof / taken;
}

double node_bytes(const NodeFacts& facts, std::uint32_t node) {
  if (facts.links == nullptr) return kUnknown;
  const PlanView& plan = facts.links->plan();
  const auto calls = facts.links->calls_of_node(node);
  if (calls.empty()) return kUnknown;
  std::int64_t bytes = 0;
  for (const PlanOperand& operand : rows_of(plan.operands, plan.calls[calls.front()].outputs)) {
    if (operand.value != kNoRow) bytes += plan.values[operand.value].bytes;
  }
  return static_cast<double>(bytes);
}

NodeValues node_values(const GraphPicture& picture, ColorBy coloring, const NodeFacts& facts) {
  NodeValues values;
  values.nodes.resize(picture.nodes.size());
  if (coloring == ColorBy::kPass) {
    number_passes(picture, values);
    return values;
  }
  for (std::uint32_t i = 0; i < picture.nodes.size(); ++i) {
    const PictureNode& node = picture.nodes[i];
    NodeValue& value = values.nodes[i];
    if (coloring == ColorBy::kOp) {
      value.category = static_cast<std::uint32_t>(legend_place(node.op_class));
    } else {
      const std::uint32_t row =
          facts.links == nullptr ? kNoRow : facts.links->node_of_serial(node.serial);
      value.value = value_of(coloring, facts, row);
    }
  }
  if (coloring != ColorBy::kOp) shade(values, coloring != ColorBy::kRoof);
  return values;
}

}  // namespace trainscope::gui
