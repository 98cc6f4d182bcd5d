// Chooses what to inspect.
#include "gui/views/inspection.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/views/inspection_rows.h"
#include "gui/views/inspection_stage.h"
#include "gui/views/model_nodes.h"

namespace trainscope::gui {

std::string type_of(const PlanView& plan, const PlanValue& value) {
  return std::string(plan.text(value.dtype)) + shape_text(rows_of(plan.dims, value.shape));
}

void InspectionBuilder::value_link(std::string label, const PlanValue& value) {
  const PlanView& plan = links->plan();
  const std::string name(plan.text(value.name));
  link(std::move(label), name, type_of(plan, value), "value:" + name);
}

void InspectionBuilder::node_link(std::string label, const PlanNode& node) {
  const PlanView& plan = links->plan();
  const std::string name(plan.text(node.name));
  link(std::move(label), name, std::string(plan.text(node.op)), "node:" + name);
}

void InspectionBuilder::node_links(std::string label, std::span<const std::uint32_t> nodes) {
  constexpr std::size_t kMostLinks = 12;
  const PlanView& plan = links->plan();
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostLinks); ++i) {
    node_link(std::exchange(label, std::string()), plan.nodes[nodes[i]]);
  }
  if (nodes.size() > kMostLinks) note(fmt::format("and {} more", nodes.size() - kMostLinks));
}

std::vector<std::uint32_t> InspectionBuilder::nodes_of(std::span<const std::uint32_t> calls) const {
  const PlanView& plan = links->plan();
  std::vector<std::uint32_t> nodes;
  std::vector<bool> seen(plan.nodes.size(), false);
  for (const std::uint32_t call : calls) {
    const std::uint32_t node = plan.calls[call].node;
    if (node == kNoRow || seen[node]) continue;
    seen[node] = true;
    nodes.push_back(node);
  }
  return nodes;
}

Inspection inspection_of(const Selection& selection, RunData& run, const PlanLinks* links) {
  InspectionBuilder rows(run, links);
  Inspection result;
  const auto done = [&](std::string_view what, std::string_view name) {
    result = {.what = std::string(what), .name = std::string(name), .rows = std::move(rows.rows)};
    return result;
  };
  if (selection.subject == Subject::kModelNode) {
    const Fate* fate = run.node_fate(selection.model_node);
    if (fate == nullptr) return result;
    inspect_model_node(rows, *fate, selection.stage);
    return done("ONNX node", fate->thing.name);
  }
  if (links == nullptr) return result;
  const PlanView& plan = links->plan();
  const std::uint32_t value = links->value_of_serial(selection.value);
  const std::uint32_t node = links->node_of_serial(selection.node);
  const Subject subject = selection.subject;
  if (subject == Subject::kKernel) {
    inspect_kernel(rows, selection.kernel);
    return done("kernel", selection.kernel);
  }
  if (subject == Subject::kValue && value != kNoRow) {
    inspect_value(rows, selection);
    return done("tensor", plan.text(plan.values[value].name));
  }
  if (subject == Subject::kBuffer && selection.buffer < plan.buffers.size()) {
    inspect_buffer(rows, selection.buffer);
    return done("buffer", plan.text(plan.buffers[selection.buffer].label));
  }
  if (subject != Subject::kNothing && node != kNoRow) {
    inspect_node(rows, selection);
    return done("node", plan.text(plan.nodes[node].name));
  }
  if (subject != Subject::kNode) return result;
  const auto at = find_stage_node(run, selection.stage, selection.node);
  if (!at) return result;
  inspect_stage_node(rows, *at);
  done("node", at->node->name);
  result.stage = run.stages()[at->stage].label;
  return result;
}

}  // namespace trainscope::gui
