// Chooses what to inspect; values, buffers and kernels.
#include "gui/views/inspection.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/bundle/plan_moment.h"
#include "engine/ir/graph.h"
#include "gui/views/inspection_rows.h"
#include "gui/views/model_nodes.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

std::string times_of(std::uint32_t begin, std::uint32_t end) {
  return fmt::format("calls {} to {}", begin, end > begin ? end - 1 : begin);
}

void add_calls(InspectionBuilder& rows, std::string_view label,
               std::span<const std::uint32_t> calls) {
  constexpr std::size_t kMostShown = 12;
  const PlanView& plan = rows.links->plan();
  std::vector<std::uint32_t> nodes;
  for (const std::uint32_t call : calls) {
    const std::uint32_t node = plan.calls[call].node;
    if (node == kNoRow || std::ranges::find(nodes, node) != nodes.end()) continue;
    nodes.push_back(node);
    if (nodes.size() > kMostShown) continue;
    rows.node_link(std::string(label), plan.nodes[node]);
    label = {};
  }
  if (nodes.size() > kMostShown) {
    rows.note(fmt::format("and {} more", nodes.size() - kMostShown));
  }
}

// Where the buffer is printed: among those that are alive at one of its calls. Empty: it is not in
// the arena, or no call is made while it lives.
std::string fact_of_buffer(const PlanView& plan, std::uint32_t id) {
  const PlanBuffer& buffer = plan.buffers[id];
  const auto call = std::ranges::find_if(plan.calls, [&](const PlanCall& each) {
    return buffer.begin <= each.time && each.time < buffer.end;
  });
  if (!is_in_arena(buffer) || call == plan.calls.end()) return {};
  const std::vector<std::uint32_t> alive = alive_at(plan, call->time);
  return fmt::format("inspect {{run}} --memory --at {} | /buffers/{}/", call - plan.calls.begin(),
                     std::ranges::find(alive, id) - alive.begin());
}

// Where the value is printed: with the node that makes it, or one that reads it. Empty: the last
// stage has no such node.
std::string fact_of_value(const Graph* graph, std::uint32_t serial) {
  if (graph == nullptr) return {};
  const std::vector<NodeId> order = graph->order();
  const auto at = [&](const std::vector<ValueId>& values) {
    return std::ranges::find_if(values, [&](ValueId id) {
      return id != kNoValue && static_cast<std::uint32_t>(graph->value(id).serial) == serial;
    });
  };
  for (std::size_t position = 0; position < order.size(); ++position) {
    const Node& node = graph->node(order[position]);
    for (const bool is_output : {true, false}) {
      const std::vector<ValueId>& values = is_output ? node.outputs : node.inputs;
      const auto found = at(values);
      if (found == values.end()) continue;
      return fmt::format("inspect {{run}} --node {} | /{}/{}/bytes", position,
                         is_output ? "outputs" : "inputs", found - values.begin());
    }
  }
  return {};
}

}  // namespace

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

void inspect_value(InspectionBuilder& rows, const Selection& selection) {
  const PlanView& plan = rows.links->plan();
  const std::uint32_t id = rows.links->value_of_serial(selection.value);
  const PlanValue& value = plan.values[id];
  rows.text("kind", std::string(name_of(value.kind)));
  rows.text("type", type_of(plan, value));
  const std::size_t stages = rows.run.stages().size();
  const Graph* graph = stages == 0 ? nullptr : rows.run.graph(stages - 1);
  rows.number(InspectionKind::kBytes, "size", static_cast<double>(value.bytes),
              fact_of_value(graph, selection.value));
  if (value.view_of != kNoRow) rows.value_link("view of", plan.values[value.view_of]);
  if (value.gradient_of != kNoRow) rows.value_link("gradient of", plan.values[value.gradient_of]);
  rows.heading("Who has to do with it");
  if (value.producer < plan.nodes.size()) rows.node_link("made by", plan.nodes[value.producer]);
  add_calls(rows, "read by", rows.links->readers_of(id));
  if (value.buffer == kNoRow) {
    rows.note("It has no bytes in the arena.");
    return;
  }
  rows.heading("Where it lies");
  inspect_buffer(rows, value.buffer);
}

void inspect_buffer(InspectionBuilder& rows, std::uint32_t id) {
  const PlanView& plan = rows.links->plan();
  const PlanBuffer& buffer = plan.buffers[id];
  rows.text("buffer", fmt::format("{}, {}", id, name_of(buffer.holds)));
  rows.text("space", std::string(name_of(buffer.space)));
  const std::string fact = fact_of_buffer(plan, id);
  const auto at = [&](std::string_view key) {
    return fact.empty() ? fact : fact + std::string(key);
  };
  rows.number(InspectionKind::kBytes, "offset", static_cast<double>(buffer.offset), at("offset"));
  rows.number(InspectionKind::kBytes, "bytes", static_cast<double>(buffer.bytes), at("bytes"));
  rows.text("alive", times_of(buffer.begin, buffer.end));
  const std::span<const std::uint32_t> members = rows_of(plan.members, buffer.values);
  if (members.size() < 2) return;
  rows.heading("Values that share it");
  for (const std::uint32_t value : members) rows.value_link({}, plan.values[value]);
}

void inspect_kernel(InspectionBuilder& rows, const std::string& kernel) {
  const PlanView& plan = rows.links->plan();
  std::vector<std::uint32_t> calls;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    if (profiler::kernel_of(plan, plan.calls[i]) == kernel) calls.push_back(i);
  }
  rows.number(InspectionKind::kCount, "calls", static_cast<double>(calls.size()),
              fmt::format("inspect {{run}} --calls | /kernels/{}", kernel));
  if (const profiler::StepTimes* times = rows.run.times(); times != nullptr) {
    profiler::Breakdown table = profiler::breakdown(*times, plan, profiler::GroupBy::kKernel,
                                                    {.machine = rows.run.machine()});
    profiler::sort_rows(table, "ms");
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const profiler::BreakdownRow& row = table.rows[i];
      if (row.name != kernel || !row.is_call) continue;
      const std::string fact = fmt::format("query {{run}} --by kernel | /rows/{}/", i);
      rows.number(InspectionKind::kMilliseconds, "time of a step", table.ms(row.ns), fact + "ms");
      rows.number(InspectionKind::kShare, "share", table.share(row), fact + "share");
      rows.number(InspectionKind::kGigaflops, "does", row.gflops(), fact + "gflops");
      rows.number(InspectionKind::kGigabytes, "moves", row.gbs(), fact + "gbs");
    }
  }
  rows.heading("Nodes that it computes");
  add_calls(rows, {}, calls);
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
    inspect_model_node(rows, *fate);
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
  return result;
}

}  // namespace trainscope::gui
