// A value: what it is, who makes and reads it. A buffer: what holds its bytes, who writes and reads
// them, where they lie and for how long.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "engine/ir/graph.h"
#include "gui/views/inspection_rows.h"

namespace trainscope::gui {
namespace {

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

// Where its bytes lie, and for how long.
void add_place(InspectionBuilder& rows, std::uint32_t id) {
  const PlanView& plan = rows.links->plan();
  const PlanBuffer& buffer = plan.buffers[id];
  const std::string fact = fact_of_buffer(plan, id);
  const auto add = [&](InspectionKind kind, std::string label, double number,
                       std::string_view key) {
    rows.number(kind, std::move(label), number, fact.empty() ? fact : fact + std::string(key));
  };
  rows.heading("Where it lies");
  rows.text("space", std::string(name_of(buffer.space)));
  add(InspectionKind::kBuffer, "buffer", id, "id");
  add(InspectionKind::kOffset, "offset", static_cast<double>(buffer.offset), "offset");
  add(InspectionKind::kBufferBytes, "bytes", static_cast<double>(buffer.bytes), "bytes");
  add(InspectionKind::kBirth, "alive from", buffer.begin, "birth");
  add(InspectionKind::kDeath, "until before", buffer.end, "death");
  add(InspectionKind::kLife, "alive for", static_cast<double>(buffer.end) - buffer.begin, "calls");
}

void add_members(InspectionBuilder& rows, std::string heading, const PlanBuffer& buffer) {
  const PlanView& plan = rows.links->plan();
  const std::span<const std::uint32_t> members = rows_of(plan.members, buffer.values);
  if (members.empty()) return;
  rows.heading(std::move(heading));
  for (const std::uint32_t value : members) rows.value_link({}, plan.values[value]);
}

// In the order of the calls, each once.
std::vector<std::uint32_t> calls_of_members(const PlanLinks& links, const PlanBuffer& buffer,
                                            bool writes) {
  std::vector<std::uint32_t> calls;
  for (const std::uint32_t value : rows_of(links.plan().members, buffer.values)) {
    const auto more = writes ? links.writers_of(value) : links.readers_of(value);
    calls.insert(calls.end(), more.begin(), more.end());
  }
  std::ranges::sort(calls);
  const auto rest = std::ranges::unique(calls);
  calls.erase(rest.begin(), rest.end());
  return calls;
}

// Calls whose workspace it is.
std::vector<std::uint32_t> calls_within(const PlanView& plan, std::uint32_t buffer) {
  std::vector<std::uint32_t> calls;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    if (plan.calls[i].workspace == buffer) calls.push_back(i);
  }
  return calls;
}

}  // namespace

void inspect_value(InspectionBuilder& rows, const Selection& selection) {
  const PlanView& plan = rows.links->plan();
  const std::uint32_t id = rows.links->value_of_serial(selection.value);
  const PlanValue& value = plan.values[id];
  rows.text("kind", std::string(name_of(value.kind)));
  rows.text("type", type_of(plan, value));
  const std::size_t stages = rows.run.stages().size();
  const Graph* graph = stages == 0 ? nullptr : rows.run.graph(stages - 1);
  rows.number(InspectionKind::kValueBytes, "size", static_cast<double>(value.bytes),
              fact_of_value(graph, selection.value));
  if (value.view_of != kNoRow) rows.value_link("view of", plan.values[value.view_of]);
  if (value.gradient_of != kNoRow) rows.value_link("gradient of", plan.values[value.gradient_of]);
  rows.heading("Who has to do with it");
  if (value.producer < plan.nodes.size()) rows.node_link("made by", plan.nodes[value.producer]);
  rows.node_links("read by", rows.links->nodes_that_read(id));
  if (value.buffer == kNoRow) {
    rows.note("It has no bytes in the arena.");
    return;
  }
  add_place(rows, value.buffer);
  const PlanBuffer& buffer = plan.buffers[value.buffer];
  if (buffer.values.count > 1) add_members(rows, "Values that share it", buffer);
}

void inspect_buffer(InspectionBuilder& rows, std::uint32_t id) {
  const PlanView& plan = rows.links->plan();
  const PlanBuffer& buffer = plan.buffers[id];
  rows.text("holds", std::string(name_of(buffer.holds)));
  const bool is_there_before = buffer.values.count > 0 && !is_made_by_node(plan, buffer);
  if (is_there_before) rows.text("begins as", std::string(plan.text(buffer.producer)));
  rows.node_links("written by", rows.nodes_of(calls_of_members(*rows.links, buffer, true)));
  rows.node_links("read by", rows.nodes_of(calls_of_members(*rows.links, buffer, false)));
  rows.node_links("workspace of", rows.nodes_of(calls_within(plan, id)));
  add_members(rows, buffer.values.count == 1 ? "Its value" : "Values that share it", buffer);
  add_place(rows, id);
}

}  // namespace trainscope::gui
