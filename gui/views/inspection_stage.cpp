// Finds nodes in the graphs of stages, and tells of them.
#include "gui/views/inspection_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "gui/views/inspection_history.h"
#include "gui/views/model_nodes.h"

namespace trainscope::gui {
namespace {

// In this stage; nothing where it has none of it.
std::optional<StageNode> node_by_serial(RunData& run, std::size_t stage, std::uint32_t serial) {
  const Graph* graph = run.graph(stage);
  if (graph == nullptr) return std::nullopt;
  for (NodeId id = graph->first(); id != kNoNode; id = graph->node(id).next) {
    const Node& node = graph->node(id);
    if (static_cast<std::uint32_t>(node.serial) != serial) continue;
    return StageNode{.stage = stage, .graph = graph, .node = &node};
  }
  return std::nullopt;
}

std::size_t place_of_shown(const RunData& run, std::int32_t shown) {
  const std::size_t count = run.stages().size();
  const bool is_there = shown >= 0 && static_cast<std::size_t>(shown) < count;
  return is_there ? static_cast<std::size_t>(shown) : count - 1;
}

// The one before that which took the node away.
std::size_t last_stage_with(const History& history, std::uint32_t serial) {
  for (std::size_t stage = 1; stage < history.size(); ++stage) {
    const bool goes =
        std::ranges::any_of(history[stage].rewrites.entries, [serial](const RewriteEntry& entry) {
          return entry.thing.is_node && is_gone(entry.kind) &&
                 static_cast<std::uint32_t>(entry.thing.serial) == serial;
        });
    if (goes) return stage - 1;
  }
  return history.size() - 1;
}

// What leads to a node of a stage: the plan has it, it is the model's, or the stage has it alone.
std::string target_of(InspectionBuilder& rows, std::size_t stage, const Node& node) {
  const auto serial = static_cast<std::uint32_t>(node.serial);
  const std::uint32_t planned = rows.links == nullptr ? kNoRow : rows.links->node_of_serial(serial);
  if (planned != kNoRow) {
    const PlanView& plan = rows.links->plan();
    return fmt::format("node:{}", plan.text(plan.nodes[planned].name));
  }
  const Fate* fate = rows.run.node_fate(serial);
  if (fate != nullptr) return "model:" + fate->thing.name;
  return fmt::format("node@{}:{}", rows.run.stages()[stage].label, node.name);
}

void add_stage_link(InspectionBuilder& rows, std::string label, std::size_t stage,
                    const Node& node) {
  rows.link(std::move(label), node.name, std::string(node.op->name), target_of(rows, stage, node));
}

// An input leads to the node that makes it, where the plan does not have the value.
void add_stage_value(InspectionBuilder& rows, const StageNode& at, ValueId id) {
  const Value& value = at.graph->value(id);
  const auto serial = static_cast<std::uint32_t>(value.serial);
  const std::uint32_t row = rows.links == nullptr ? kNoRow : rows.links->value_of_serial(serial);
  std::string target;
  if (row != kNoRow) {
    const PlanView& plan = rows.links->plan();
    target = fmt::format("value:{}", plan.text(plan.values[row].name));
  } else if (value.producer != kNoNode && &at.graph->node(value.producer) != at.node) {
    target = target_of(rows, at.stage, at.graph->node(value.producer));
  }
  rows.link({}, value.name, type_text(value.type), std::move(target));
}

void add_stage_values(InspectionBuilder& rows, std::string_view heading, const StageNode& at,
                      const std::vector<ValueId>& values) {
  std::vector<ValueId> seen;
  for (const ValueId id : values) {
    if (id == kNoValue || std::ranges::find(seen, id) != seen.end()) continue;
    if (seen.empty()) rows.heading(std::string(heading));
    seen.push_back(id);
    add_stage_value(rows, at, id);
  }
}

// Of the values that the plan does not have: it knows the others' readers.
void add_stage_readers(InspectionBuilder& rows, const StageNode& at) {
  constexpr std::size_t kMostReaders = 12;
  std::vector<NodeId> readers;
  for (const ValueId id : at.node->outputs) {
    if (id == kNoValue) continue;
    const Value& value = at.graph->value(id);
    const auto serial = static_cast<std::uint32_t>(value.serial);
    if (rows.links != nullptr && rows.links->value_of_serial(serial) != kNoRow) continue;
    for (const Use& use : value.uses) {
      if (std::ranges::find(readers, use.node) == readers.end()) readers.push_back(use.node);
    }
  }
  std::string label = "read by";
  for (std::size_t i = 0; i < std::min(readers.size(), kMostReaders); ++i) {
    add_stage_link(rows, std::exchange(label, std::string()), at.stage, at.graph->node(readers[i]));
  }
  if (readers.size() > kMostReaders) {
    rows.note(fmt::format("and {} more", readers.size() - kMostReaders));
  }
}

void add_stage_fate(InspectionBuilder& rows, const StageNode& at) {
  const StageHistory* stages = rows.run.history();
  const std::size_t last = rows.run.stages().size() - 1;
  const Graph* end = rows.run.graph(last);
  if (stages == nullptr || end == nullptr) return;
  const Fates fates(stages->shared_history(), static_cast<std::ptrdiff_t>(at.stage), last, *end);
  add_fate(rows, stages->history(),
           fates.of({.is_node = true, .serial = at.node->serial, .name = at.node->name}));
}

void add_stage_provenance(InspectionBuilder& rows, const StageNode& at) {
  const Provenance& provenance = at.node->provenance;
  rows.heading("Where it comes from");
  const std::vector<std::string_view> names(provenance.sources.begin(), provenance.sources.end());
  add_sources(rows, names);
  const auto add = [&](std::string label, Serial serial) {
    if (serial == kNoSerial) return;
    const auto found = node_by_serial(rows.run, at.stage, static_cast<std::uint32_t>(serial));
    if (found) add_stage_link(rows, std::move(label), at.stage, *found->node);
  };
  add("gradient of", provenance.backward_of);
  add("computes again", provenance.rematerialized_of);
}

std::string operands_text(const StageNode& at) {
  std::string text;
  for (const std::vector<ValueId>* values : {&at.node->inputs, &at.node->outputs}) {
    for (const ValueId id : *values) {
      if (id == kNoValue) continue;
      const Value& value = at.graph->value(id);
      text += fmt::format("{} {},", value.name, type_text(value.type));
    }
    text += ';';
  }
  return text;
}

}  // namespace

std::optional<StageNode> find_stage_node(RunData& run, std::int32_t shown, std::uint32_t serial) {
  if (serial == 0 || run.stages().empty()) return std::nullopt;
  const std::size_t stage = place_of_shown(run, shown);
  if (auto found = node_by_serial(run, stage, serial)) return found;
  const StageHistory* history = run.history();
  if (history == nullptr) return std::nullopt;
  return node_by_serial(run, last_stage_with(history->history(), serial), serial);
}

Selection select_unplanned_node(RunData& run, const Selection& from, std::uint32_t serial) {
  Selection selection{.stage = from.stage, .step = from.step, .range = from.range};
  const auto found = find_stage_node(run, from.stage, serial);
  if (!found) return selection;
  selection.subject = Subject::kNode;
  selection.stage = static_cast<std::int32_t>(found->stage);
  selection.node = serial;
  selection.stage_node = fmt::format("{}:{}", run.stages()[found->stage].label, found->node->name);
  return selection;
}

void inspect_stage_node(InspectionBuilder& rows, const StageNode& at) {
  const Node& node = *at.node;
  rows.text("op", std::string(node.op->name));
  rows.text("phase", std::string(name_of(node.phase)));
  rows.text("made by", node.provenance.pass);
  rows.text("attributes", attributes_text(node.attributes));
  add_stage_fate(rows, at);
  add_stage_work(rows, at);
  add_history(rows, "How it came", static_cast<std::uint32_t>(node.serial), at.stage);
  add_stage_provenance(rows, at);
}

void add_stage_work(InspectionBuilder& rows, const StageNode& at) {
  const std::string& label = rows.run.stages()[at.stage].label;
  const Cost cost = cost_of(*at.node->op, *NodeArgs(*at.graph, *at.node));
  const std::string fact = fmt::format("inspect {{run}} --stage {} --node {} | /",
                                       shell_word(label), shell_word(at.node->name));
  rows.heading("In the stage " + label);
  rows.number(InspectionKind::kFlops, "FLOPs", static_cast<double>(cost.flops), fact + "flops");
  rows.number(InspectionKind::kBytesRead, "reads", static_cast<double>(cost.bytes_read),
              fact + "bytes_read");
  rows.number(InspectionKind::kBytesWritten, "writes", static_cast<double>(cost.bytes_written),
              fact + "bytes_written");
  add_stage_values(rows, "Reads", at, at.node->inputs);
  add_stage_values(rows, "Writes", at, at.node->outputs);
  add_stage_readers(rows, at);
}

void add_stage_operands(InspectionBuilder& rows, const StageNode& at) {
  const auto last = node_by_serial(rows.run, rows.run.stages().size() - 1,
                                   static_cast<std::uint32_t>(at.node->serial));
  if (last && operands_text(*last) == operands_text(at)) return;
  const std::string& label = rows.run.stages()[at.stage].label;
  add_stage_values(rows, "Reads in the stage " + label, at, at.node->inputs);
  add_stage_values(rows, "Writes in the stage " + label, at, at.node->outputs);
}

}  // namespace trainscope::gui
