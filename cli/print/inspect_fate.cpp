// `inspect --fate` and `diff`: what became of nodes and values, as facts and text.
#include <fmt/format.h>

#include <map>

#include "cli/print/inspect.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kNamesShown = 4;  // of many, in a row of text

void set_named(Json& json, const NamedThing& thing) {
  json.set(thing.is_node ? "node" : "value", thing.name);
  if (thing.serial != kNoSerial) json.set("serial", static_cast<std::int32_t>(thing.serial));
}

Json named_list(const std::vector<NamedThing>& things) {
  Json list = Json::array();
  for (const NamedThing& thing : things) {
    Json json = Json::object();
    set_named(json, thing);
    list.push_back(std::move(json));
  }
  return list;
}

std::string names_text(const std::vector<NamedThing>& things) {
  std::string text;
  for (std::size_t i = 0; i < std::min(things.size(), kNamesShown); ++i) {
    text += fmt::format("{}{} '{}'", i == 0 ? "" : ", ", things[i].is_node ? "node" : "value",
                        printable(things[i].name));
  }
  if (things.size() > kNamesShown) text += fmt::format(" and {} more", things.size() - kNamesShown);
  return text;
}

// "inside node 'Gelu'".
std::string outcome_text(const Fate& fate) {
  const std::string now = names_text(fate.now);
  switch (fate.kind) {
    case FateKind::kKept:
    case FateKind::kDead:
    case FateKind::kUnexplained:
      return std::string(name_of(fate.kind));
    case FateKind::kRenamed:
      return "renamed: " + now;
    case FateKind::kReplaced:
      return "replaced by " + now;
    case FateKind::kSplit:
      return "split into " + now;
    case FateKind::kFolded:
      return now.empty() ? "folded to a constant that is used up" : "folded to " + now;
    case FateKind::kInside:
      return "inside " + now;
  }
  return {};
}

Json step_facts(const History& history, const FateStep& step) {
  const RewriteRule& rule = rule_of(history, step);
  Json json =
      Json::object({{"stage", history[step.stage].label}, {"kind", name_of(step.entry->kind)}});
  set_named(json, step.entry->thing);
  if (!step.entry->detail.empty()) json.set("detail", step.entry->detail);
  json.set("others", named_list(step.entry->others));
  json.set("rule", rule.name);
  json.set("reason", rule.reason);
  return json;
}

Json fate_facts(const History& history, const Fate& fate) {
  Json json = Json::object();
  set_named(json, fate.thing);
  json.set("fate", name_of(fate.kind));
  json.set("now", named_list(fate.now));
  if (const FateStep* step = fate.decided()) {
    json.set("stage", history[step->stage].label);
    json.set("rule", rule_of(history, *step).name);
  }
  json.set("reason", reason_of(history, fate));
  if (!fate.gradient.name.empty()) json.set("gradient", fate.gradient.name);
  Json steps = Json::array();
  for (const FateStep& step : fate.steps) steps.push_back(step_facts(history, step));
  json.set("steps", std::move(steps));
  return json;
}

using Counts = std::map<std::string, std::int64_t>;

Json counts_facts(const Counts& counts) {
  Json json = Json::object();
  for (const auto& [kind, count] : counts) json.set(kind, count);
  return json;
}

std::string counts_text(const Counts& counts) {
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  }
  return text.empty() ? "none" : text;
}

std::string fate_text(const History& history, const Fate& fate) {
  std::string text = fmt::format("{} '{}': {}\n", fate.thing.is_node ? "node" : "value",
                                 printable(fate.thing.name), outcome_text(fate));
  for (const FateStep& step : fate.steps) {
    const RewriteRule& rule = rule_of(history, step);
    text +=
        fmt::format("  {:<26} {}\n  {:<26} {}\n", printable(history[step.stage].label, 40),
                    text_of(step, names_text(step.entry->others)), "", printable(rule.reason, 400));
  }
  if (fate.steps.empty()) text += fmt::format("  {}\n", reason_of(history, fate));
  if (!fate.gradient.name.empty()) {
    text += fmt::format("  its gradient is '{}'\n", printable(fate.gradient.name));
  }
  return text;
}

Outcome fates_outcome(const History& history, const std::vector<Fate>& fates) {
  Outcome outcome;
  Json list = Json::array();
  Counts nodes;
  Counts values;
  std::int64_t unexplained = 0;
  for (const Fate& fate : fates) {
    list.push_back(fate_facts(history, fate));
    ++(fate.thing.is_node ? nodes : values)[std::string(name_of(fate.kind))];
    unexplained += fate.kind == FateKind::kUnexplained ? 1 : 0;
  }
  outcome.facts.set("fates", std::move(list));
  outcome.facts.set("nodes", counts_facts(nodes));
  outcome.facts.set("values", counts_facts(values));
  outcome.facts.set("unexplained", unexplained);
  outcome.text = fmt::format("nodes   {}\nvalues  {}\n", counts_text(nodes), counts_text(values));
  return outcome;
}

Json row_facts(const DiffRow& row) {
  Json json = Json::object({{"kind", row.kind}});
  set_named(json, row.thing);
  json.set("others", named_list(row.others));
  if (!row.changes.empty()) json.set("changes", row.changes);
  if (!row.stage.empty()) json.set("stage", row.stage);
  if (!row.rule.empty()) json.set("rule", row.rule);
  json.set("reason", row.reason);
  return json;
}

bool is_in_both(const DiffRow& row) { return row.kind == "kept" || row.kind == "same"; }

std::string row_text(const DiffRow& row) {
  const std::string others = is_in_both(row) ? std::string() : names_text(row.others);
  std::string text = fmt::format("  {:<6} {:<14} {}", row.thing.is_node ? "node" : "value",
                                 row.kind, printable(row.thing.name));
  if (!others.empty()) {
    const bool is_new = row.kind == "added" || row.kind == "rematerialized";
    text += fmt::format("  {} {}", is_new ? "from" : "->", others);
  }
  if (!row.changes.empty()) text += fmt::format("  [{}]", row.changes);
  if (!row.stage.empty()) text += fmt::format("  {}", printable(row.stage));
  if (!row.reason.empty() && !is_in_both(row))
    text += fmt::format(": {}", printable(row.reason, 400));
  return text + "\n";
}

}  // namespace

Outcome describe_fate(const StageHistory& stages, const std::string& name) {
  const std::vector<Fate> fates = imported_fates(stages, name);
  Outcome outcome = fates_outcome(stages.history(), fates);
  outcome.text.clear();
  for (const Fate& fate : fates) outcome.text += fate_text(stages.history(), fate);
  return outcome;
}

Outcome describe_fates(const StageHistory& stages) {
  const std::vector<Fate> fates = imported_fates(stages);
  Outcome outcome = fates_outcome(stages.history(), fates);
  std::string rows;
  for (const Fate& fate : fates) {
    const FateStep* step = fate.decided();
    rows +=
        fmt::format("  {:<6} {:<32} {}\n         {} {}\n", fate.thing.is_node ? "node" : "value",
                    printable(fate.thing.name), outcome_text(fate),
                    step == nullptr ? "" : printable(stages.history()[step->stage].label) + ":",
                    printable(reason_of(stages.history(), fate), 400));
  }
  outcome.text = rows + outcome.text;
  return outcome;
}

Outcome describe_diff(const StageDiff& diff, DiffRows rows) {
  Outcome outcome;
  Json list = Json::array();
  for (const DiffRow& row : diff.rows) {
    list.push_back(row_facts(row));
    const bool shown = rows == DiffRows::kAll || !is_in_both(row) || !row.changes.empty();
    if (shown) outcome.text += row_text(row);
  }
  outcome.facts.set("nodes", counts_facts(diff.nodes));
  outcome.facts.set("values", counts_facts(diff.values));
  outcome.facts.set("unexplained", diff.unexplained);
  outcome.facts.set("rows", std::move(list));
  outcome.text = fmt::format("nodes   {}\nvalues  {}\n{}", counts_text(diff.nodes),
                             counts_text(diff.values), outcome.text);
  return outcome;
}

}  // namespace trainscope
