// Entries of rewrite logs about one node, and the fates of its sources.
#include "gui/views/inspection_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "gui/views/model_nodes.h"

namespace trainscope::gui {
namespace {

bool is_node_with(const NamedThing& thing, std::uint32_t serial) {
  return thing.is_node && static_cast<std::uint32_t>(thing.serial) == serial;
}

// A stage's nodes whose work the node does now, for the same reason.
struct TakenWork {
  const RewriteRule* rule = nullptr;
  std::vector<NamedThing> nodes = {};
};

// Nodes of the model that have become what they are for the same reason.
struct SharedReason {
  std::string reason = {};
  std::vector<NamedThing> nodes = {};
};

void add_work(std::vector<TakenWork>& taken, const RewriteRule& rule, const NamedThing& node) {
  const auto same = std::ranges::find(taken, &rule, &TakenWork::rule);
  TakenWork& work = same == taken.end() ? taken.emplace_back(TakenWork{.rule = &rule}) : *same;
  work.nodes.push_back(node);
}

// Texts of one stage, of these entries of its log, each with its reason.
std::vector<std::string> texts_of_stage(const RewriteLog& log, std::span<const LogEntry> entries,
                                        std::uint32_t serial) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& text, const RewriteRule& rule) {
    texts.push_back(rule.reason.empty() ? text : fmt::format("{}: {}", text, rule.reason));
  };
  std::vector<TakenWork> taken;
  for (const LogEntry& place : entries) {
    const RewriteEntry& entry = log.entries[place.entry];
    const RewriteRule& rule = log.rules[entry.rule];
    if (is_node_with(entry.thing, serial)) {
      add(text_of(entry, names_of(entry.others)), rule);
      continue;
    }
    if (!entry.thing.is_node) continue;
    if (entry.kind == RewriteKind::kInside) {
      add_work(taken, rule, entry.thing);
    } else if (const std::string text = text_beside(entry); !text.empty()) {
      add(text, rule);
    }
  }
  for (const TakenWork& work : taken) {
    add("does the work of " + names_of(work.nodes), *work.rule);
  }
  return texts;
}

}  // namespace

void add_history(InspectionBuilder& rows, std::string_view heading, std::uint32_t serial,
                 std::size_t last_stage) {
  const StageHistory* stages = rows.run.history();
  if (stages == nullptr || serial == 0) return;
  const History& history = stages->history();
  bool begins = true;
  std::span<const LogEntry> rest = rows.run.entries_of(serial);
  while (!rest.empty() && rest.front().stage <= last_stage) {
    const std::size_t stage = rest.front().stage;
    const auto count =
        std::ranges::find_if(rest, [stage](const LogEntry& each) { return each.stage != stage; }) -
        rest.begin();
    const auto own = rest.first(static_cast<std::size_t>(count));
    rest = rest.subspan(own.size());
    for (const std::string& text : texts_of_stage(history[stage].rewrites, own, serial)) {
      if (std::exchange(begins, false)) rows.heading(std::string(heading));
      rows.note(fmt::format("{}: {}", history[stage].label, text));
    }
  }
}

void add_sources(InspectionBuilder& rows, std::span<const std::string_view> names) {
  const StageHistory* stages = rows.run.history();
  std::string label = "stems from";
  std::vector<SharedReason> reasons;
  for (const std::string_view name : names) {
    const Fate* fate = stages == nullptr ? nullptr : rows.run.node_fate(name);
    if (fate == nullptr) {
      rows.text(std::exchange(label, std::string()), std::string(name));
      continue;
    }
    rows.link(std::exchange(label, std::string()), std::string(name),
              brief_fate(stages->history(), *fate), fmt::format("model:{}", name));
    const std::string reason = reason_of(stages->history(), *fate);
    const auto same = std::ranges::find(reasons, reason, &SharedReason::reason);
    SharedReason& shared =
        same == reasons.end() ? reasons.emplace_back(SharedReason{.reason = reason}) : *same;
    shared.nodes.push_back(fate->thing);
  }
  for (const SharedReason& shared : reasons) {
    rows.note(fmt::format("{}: {}", names_of(shared.nodes), shared.reason));
  }
}

}  // namespace trainscope::gui
