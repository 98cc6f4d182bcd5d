// Fates of the model's nodes as lists, selections and rows.
#include "gui/views/model_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/ir/graph.h"

namespace trainscope::gui {
namespace {

constexpr std::size_t kMostNamed = 12;  // of what a node is now

bool is_gone_from_model(const Fate& fate) {
  return fate.thing.is_node && fate.kind != FateKind::kKept && fate.kind != FateKind::kRenamed;
}

// By serial, of the imported graph.
std::unordered_map<Serial, std::string_view> imported_ops(RunData& run) {
  std::unordered_map<Serial, std::string_view> ops;
  const Graph* imported = run.graph(0);
  if (imported == nullptr) return ops;
  for (const NodeId id : imported->order()) {
    const Node& node = imported->node(id);
    ops.emplace(node.serial, node.op->name);
  }
  return ops;
}

std::string stage_of(const History& history, const Fate& fate) {
  const FateStep* step = fate.decided();
  return step == nullptr ? std::string() : history[step->stage].label;
}

std::string names_of(const std::vector<NamedThing>& things) {
  std::string names;
  for (std::size_t i = 0; i < std::min(things.size(), kMostNamed); ++i) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", things[i].name);
  }
  return things.size() > kMostNamed
             ? fmt::format("{} and {} more", names, things.size() - kMostNamed)
             : names;
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

std::vector<GoneNode> gone_nodes(RunData& run) {
  std::vector<GoneNode> gone;
  if (run.history() == nullptr) return gone;
  const std::unordered_map<Serial, std::string_view> ops = imported_ops(run);
  for (const Fate& fate : run.fates()) {
    if (!is_gone_from_model(fate)) continue;
    const auto op = ops.find(fate.thing.serial);
    const std::string stage = stage_of(run.history()->history(), fate);
    gone.push_back(
        {.name = fate.thing.name,
         .op = op == ops.end() ? std::string() : std::string(op->second),
         .fate = fmt::format("{}{}{}", name_of(fate.kind), stage.empty() ? "" : ", ", stage)});
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

void inspect_model_node(InspectionBuilder& rows, const Fate& fate) {
  const StageHistory* stages = rows.run.history();
  if (stages == nullptr) return;
  const History& history = stages->history();
  const auto ops = imported_ops(rows.run);
  const auto op = ops.find(fate.thing.serial);
  if (op != ops.end()) rows.text("op", std::string(op->second));
  rows.heading("Where it went");
  rows.text("became", std::string(name_of(fate.kind)));
  rows.text("by", stage_of(history, fate));
  if (fate.kind != FateKind::kDead) add_now(rows, fate.now);
  rows.note(reason_of(history, fate));
  if (fate.steps.empty()) return;
  rows.heading("What the passes did to it");
  for (const FateStep& step : fate.steps) {
    const RewriteEntry& entry = *step.entry;
    std::string text(name_of(entry.kind));
    if (!entry.detail.empty()) text += " " + entry.detail;
    if (!entry.others.empty()) text += " " + names_of(entry.others);
    rows.note(fmt::format("{}: {}", history[step.stage].label, text));
  }
}

}  // namespace trainscope::gui
