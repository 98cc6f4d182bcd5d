// Fates of the model's nodes as lists, selections and rows.
#include "gui/views/model_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/ir/graph.h"
#include "gui/views/inspection_stage.h"

namespace trainscope::gui {
namespace {

constexpr std::size_t kMostNamed = 12;  // of what a node is now

bool is_gone_from_model(const Fate& fate) {
  return fate.thing.is_node && fate.kind != FateKind::kKept;
}

// By serial, of the imported graph.
std::unordered_map<Serial, const Node*> imported_nodes(RunData& run) {
  std::unordered_map<Serial, const Node*> nodes;
  const Graph* imported = run.graph(0);
  if (imported == nullptr) return nodes;
  for (const NodeId id : imported->order()) {
    const Node& node = imported->node(id);
    nodes.emplace(node.serial, &node);
  }
  return nodes;
}

// Ops of the nodes that read what a node makes, each once.
std::vector<std::string> reader_ops(const Graph& graph, const Node& node) {
  std::vector<std::string> ops;
  for (const ValueId result : node.outputs) {
    if (result == kNoValue) continue;
    for (const Use& use : graph.value(result).uses) {
      const std::string_view op = graph.node(use.node).op->name;
      if (std::ranges::find(ops, op) == ops.end()) ops.emplace_back(op);
    }
  }
  return ops;
}

std::string stage_of(const History& history, const Fate& fate) {
  const FateStep* step = fate.decided();
  return step == nullptr ? std::string() : history[step->stage].label;
}

// To where the program has it, as far as it has.
void add_now(InspectionBuilder& rows, const std::vector<NamedThing>& now) {
  std::string label = "now";
  for (std::size_t i = 0; i < std::min(now.size(), kMostNamed); ++i) {
    const auto serial = static_cast<std::uint32_t>(now[i].serial);
    const PlanLinks* links = rows.links;
    const std::uint32_t node =
        links == nullptr || !now[i].is_node ? kNoRow : links->node_of_serial(serial);
    const std::uint32_t value =
        links == nullptr || now[i].is_node ? kNoRow : links->value_of_serial(serial);
    if (node != kNoRow) {
      rows.node_link(std::exchange(label, std::string()), links->plan().nodes[node]);
    } else if (value != kNoRow) {
      rows.value_link(std::exchange(label, std::string()), links->plan().values[value]);
    } else {
      rows.text(std::exchange(label, std::string()), now[i].name);
    }
  }
  if (now.size() > kMostNamed) rows.note(fmt::format("and {} more", now.size() - kMostNamed));
}

}  // namespace

std::string names_of(const std::vector<NamedThing>& things) {
  std::string names;
  for (std::size_t i = 0; i < std::min(things.size(), kMostNamed); ++i) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", things[i].name);
  }
  return things.size() > kMostNamed
             ? fmt::format("{} and {} more", names, things.size() - kMostNamed)
             : names;
}

std::string brief_fate(const History& history, const Fate& fate) {
  const std::string stage = stage_of(history, fate);
  return fmt::format("{}{}{}", name_of(fate.kind), stage.empty() ? "" : ", ", stage);
}

std::vector<GoneNode> gone_nodes(RunData& run) {
  std::vector<GoneNode> gone;
  if (run.history() == nullptr) return gone;
  const std::unordered_map<Serial, const Node*> nodes = imported_nodes(run);
  for (const Fate& fate : run.fates()) {
    if (!is_gone_from_model(fate)) continue;
    const auto node = nodes.find(fate.thing.serial);
    gone.push_back({.name = fate.thing.name, .fate = brief_fate(run.history()->history(), fate)});
    if (node == nodes.end()) continue;
    gone.back().op = node->second->op->name;
    gone.back().readers = reader_ops(*run.graph(0), *node->second);
  }
  return gone;
}

Selection select_model_node(RunData& run, Selection from, std::string_view name) {
  Selection selection{.stage = from.stage, .step = from.step, .range = from.range};
  const Fate* fate = run.node_fate(name);
  if (fate == nullptr) return selection;
  selection.subject = Subject::kModelNode;
  selection.model_node = fate->thing.name;
  selection.node = static_cast<std::uint32_t>(fate->thing.serial);
  return selection;
}

std::string fate_sentence(const History& history, const Fate& fate) {
  const std::string stage = stage_of(history, fate);
  const bool names_others = fate.kind != FateKind::kDead && !fate.now.empty();
  return fmt::format("{}: {}{}{}{}: {}", fate.thing.name, name_of(fate.kind),
                     names_others ? " " + names_of(fate.now) : "", stage.empty() ? "" : " by ",
                     stage, reason_of(history, fate));
}

void add_fate(InspectionBuilder& rows, const History& history, const Fate& fate) {
  rows.heading("Where it went");
  rows.text("became", std::string(name_of(fate.kind)));
  rows.text("by", stage_of(history, fate));
  if (fate.kind != FateKind::kDead) add_now(rows, fate.now);
  rows.note(reason_of(history, fate));
  if (fate.steps.empty()) return;
  rows.heading("What the passes did to it");
  for (const FateStep& step : fate.steps) {
    rows.note(fmt::format("{}: {}", history[step.stage].label,
                          text_of(step, names_of(step.entry->others))));
  }
}

void inspect_model_node(InspectionBuilder& rows, const Fate& fate, std::int32_t shown_stage) {
  const StageHistory* stages = rows.run.history();
  if (stages == nullptr) return;
  // Without a serial the import did not keep it.
  const auto at =
      find_stage_node(rows.run, shown_stage, static_cast<std::uint32_t>(fate.thing.serial));
  if (at) {
    rows.text("op", std::string(at->node->op->name));
    rows.text("phase", std::string(name_of(at->node->phase)));
    rows.text("attributes", attributes_text(at->node->attributes));
  }
  add_fate(rows, stages->history(), fate);
  if (at) add_stage_work(rows, *at);
}

}  // namespace trainscope::gui
