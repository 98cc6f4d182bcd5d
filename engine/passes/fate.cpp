// Follows nodes and values through rewrite logs.
#include "engine/passes/fate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string model_key(const NamedThing& thing) {
  return (thing.is_node ? "n " : "v ") + thing.name;
}

// The list without what is in it twice.
void keep_first(std::vector<NamedThing>& things) {
  std::unordered_set<Serial> seen;
  std::erase_if(things, [&seen](const NamedThing& thing) {
    return thing.serial != kNoSerial && !seen.insert(thing.serial).second;
  });
}

// What follows from an entry about something that is a fate's last word so far. What a fold makes
// of it depends on the other parts of a split: Fates::settle says so.
FateKind next_kind(FateKind kind, const RewriteEntry& entry) {
  if (kind == FateKind::kUnexplained) return kind;
  switch (entry.kind) {
    case RewriteKind::kReplaced:
      return entry.thing.is_node ? FateKind::kReplaced : kind;
    case RewriteKind::kInside:
      return kind == FateKind::kSplit ? kind : FateKind::kInside;
    case RewriteKind::kSplit:
      return FateKind::kSplit;
    case RewriteKind::kRemoved:
      return FateKind::kUnexplained;
    default:
      return kind;
  }
}

// The stage in which the last reader went says more than the one that cleared up.
std::string reason_of_death(const History& history, const Fate& fate) {
  for (auto step = fate.steps.rbegin(); step != fate.steps.rend(); ++step) {
    if (step->entry->kind != RewriteKind::kUnread || step->entry->others.empty()) continue;
    return fmt::format("Nobody reads it since {}, which took away its reader '{}'.",
                       history[step->stage].label, step->entry->others[0].name);
  }
  return rule_of(history, *fate.decided()).reason;
}

}  // namespace

std::string_view name_of(FateKind kind) {
  constexpr std::string_view kNames[kFateKinds] = {"kept",  "renamed", "replaced", "inside",
                                                   "split", "folded",  "dead",     "unexplained"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string reason_of(const History& history, const Fate& fate) {
  const FateStep* step = fate.decided();
  if (fate.kind == FateKind::kUnexplained) {
    return step == nullptr
               ? "it is gone, and no rewrite log says why"
               : "removed by " + rule_of(history, *step).name + ", which recorded no reason";
  }
  if (step == nullptr) {
    return fate.steps.empty() ? "No pass changed it." : "Passes changed it in place.";
  }
  if (fate.kind == FateKind::kDead) return reason_of_death(history, fate);
  return rule_of(history, *step).reason;
}

struct Fates::Course {
  Fate fate;
  std::unordered_set<Serial> constants = {};  // that it, or parts of it, were folded to
  std::ptrdiff_t fold = -1;                   // the last step that folded a part that was none

  // Notes an entry about `thing`, which the fate has come to; whether others have its place now.
  bool apply(const FateStep& step, NamedThing& thing);
  bool is_folded() const {
    const auto is_constant = [this](const NamedThing& thing) {
      return constants.contains(thing.serial);
    };
    return fold >= 0 && std::all_of(fate.now.begin(), fate.now.end(), is_constant);
  }
};

bool Fates::Course::apply(const FateStep& step, NamedThing& thing) {
  const RewriteEntry& entry = *step.entry;
  fate.steps.push_back(step);
  const std::ptrdiff_t at = std::ssize(fate.steps) - 1;
  const bool renamed = entry.kind == RewriteKind::kRenamed;
  const bool folds = entry.kind == RewriteKind::kFolded;
  const bool was_constant = constants.contains(thing.serial);
  const bool stays_constant =
      was_constant && entry.kind != RewriteKind::kInside && entry.kind != RewriteKind::kSplit;
  if (folds && !was_constant) fold = at;
  if (folds || stays_constant) {
    for (const NamedThing& other : entry.others) constants.insert(other.serial);
  }
  const FateKind kind = next_kind(fate.kind, entry);
  // What becomes of a constant later is not why there is one.
  const bool moves = (is_gone(entry.kind) || renamed) && !folds && !stays_constant;
  if (kind != fate.kind || (moves && kind != FateKind::kUnexplained)) fate.decision = at;
  fate.kind = kind;
  if (renamed) thing.name = entry.detail;
  return is_gone(entry.kind) || (renamed && !entry.others.empty());
}

std::string text_of(const RewriteEntry& entry, std::string_view others) {
  switch (entry.kind) {
    case RewriteKind::kAdded:
      return others.empty() ? "added" : fmt::format("made of {}", others);
    case RewriteKind::kRematerialized:
      return fmt::format("rematerializes {}", others);
    case RewriteKind::kRenamed:
      return fmt::format("renamed to '{}'", printable(entry.detail));
    case RewriteKind::kChanged:
      return "changed: " + entry.detail;
    case RewriteKind::kUnread:
      return others.empty() ? "unread from here on" : fmt::format("no longer read by {}", others);
    case RewriteKind::kReplaced:
      return fmt::format("replaced by {}", others);
    case RewriteKind::kInside:
      return fmt::format("inside {}", others);
    case RewriteKind::kSplit:
      return fmt::format("split into {}", others);
    case RewriteKind::kFolded:
      return fmt::format("folded to {}", others);
    case RewriteKind::kDead:
    case RewriteKind::kRemoved:
      break;
  }
  return std::string(name_of(entry.kind));
}

std::string text_beside(const RewriteEntry& entry) {
  const std::string name = printable(entry.thing.name);
  switch (entry.kind) {
    case RewriteKind::kInside:
      return fmt::format("does the work of '{}'", name);
    case RewriteKind::kSplit:
      return fmt::format("does a part of the work of '{}'", name);
    case RewriteKind::kRematerialized:
      return fmt::format("rematerialized as '{}'", name);
    case RewriteKind::kRenamed:
      return fmt::format("was called '{}'", name);
    default:
      return {};
  }
}

std::string text_of(const FateStep& step, std::string_view others) {
  // The thing of the entry is the copy; the fate is that of the original.
  const bool is_of_copy = step.entry->kind == RewriteKind::kRematerialized;
  return is_of_copy ? text_beside(*step.entry) : text_of(*step.entry, others);
}

const RewriteRule& rule_of(const History& history, const FateStep& step) {
  return history[step.stage].rewrites.rules[step.entry->rule];
}

Fates::Fates(std::shared_ptr<const History> history, std::ptrdiff_t from, std::size_t to,
             const Graph& end)
    : history_(std::move(history)), first_(static_cast<std::size_t>(from + 1)), to_(to) {
  for (std::size_t stage = first_; stage <= to; ++stage) {
    const RewriteLog& log = (*history_)[stage].rewrites;
    stages_.push_back(index_of(log));
    for (const RewriteEntry& entry : log.entries) {
      const bool is_new =
          entry.kind == RewriteKind::kAdded || entry.kind == RewriteKind::kRematerialized;
      if (is_new) added_.insert_or_assign(entry.thing.serial, step(stage, entry));
    }
  }
  for (const NamedThing& thing : things_of(end)) is_node_at_end_[thing.serial] = thing.is_node;
  for (ValueId id : end.live_values()) {
    const Value& value = end.value(id);
    for (Serial of : value.gradient_of) {
      gradients_[of] = {.is_node = false, .serial = value.serial, .name = value.name};
    }
  }
}

Fates::Index Fates::index_of(const RewriteLog& log) {
  Index index;
  for (const RewriteEntry& entry : log.entries) {
    if (entry.kind == RewriteKind::kRematerialized && !entry.others.empty()) {
      index.copies[entry.others[0].serial].push_back(&entry);
    }
    if (entry.kind == RewriteKind::kAdded || entry.kind == RewriteKind::kRematerialized) continue;
    if (entry.thing.serial == kNoSerial) {
      index.of_model[model_key(entry.thing)].push_back(&entry);
    } else {
      index.by_serial[entry.thing.serial].push_back(&entry);
    }
  }
  return index;
}

const FateStep* Fates::added(Serial serial) const {
  const auto found = added_.find(serial);
  return found == added_.end() ? nullptr : &found->second;
}

const std::vector<const RewriteEntry*>* Fates::entries_about(std::size_t stage,
                                                             const NamedThing& thing) const {
  const Index& index = stages_[stage - first_];
  if (thing.serial == kNoSerial) {
    const auto found = index.of_model.find(model_key(thing));
    return found == index.of_model.end() ? nullptr : &found->second;
  }
  const auto found = index.by_serial.find(thing.serial);
  return found == index.by_serial.end() ? nullptr : &found->second;
}

// What one stage did to what the fate had come to.
void Fates::advance(Course& course, std::size_t stage) const {
  Fate& fate = course.fate;
  std::vector<NamedThing> next;
  for (NamedThing& thing : fate.now) {
    const auto* entries = entries_about(stage, thing);
    const auto copies = stages_[stage - first_].copies.find(thing.serial);
    bool stays = true;
    for (std::size_t i = 0; entries != nullptr && i < entries->size(); ++i) {
      const RewriteEntry& entry = *(*entries)[i];
      if (!course.apply(step(stage, entry), thing)) continue;
      stays = false;
      next.insert(next.end(), entry.others.begin(), entry.others.end());
    }
    if (copies != stages_[stage - first_].copies.end()) {
      for (const RewriteEntry* entry : copies->second) {
        fate.steps.push_back(step(stage, *entry));
      }
    }
    if (stays) next.push_back(std::move(thing));
  }
  keep_first(next);
  fate.now = std::move(next);
}

// That of any value that the fate has come through.
void Fates::find_gradient(Fate& fate) const {
  if (fate.thing.is_node || fate.now.size() != 1 || fate.now[0].is_node) return;
  const auto found = gradients_.find(fate.now[0].serial);
  if (found != gradients_.end()) fate.gradient = found->second;
}

// What can be said at the end alone.
void Fates::settle(Course& course) const {
  Fate& fate = course.fate;
  if (fate.kind == FateKind::kUnexplained) return;
  if (course.is_folded()) {
    fate.kind = FateKind::kFolded;
    fate.decision = course.fold;
  }
  const bool same_kind = fate.kind == FateKind::kKept;  // a node is a node yet
  for (const NamedThing& thing : fate.now) {
    const auto there = is_node_at_end_.find(thing.serial);
    const bool is_there = there != is_node_at_end_.end() && there->second == thing.is_node;
    if (is_there && (!same_kind || thing.is_node == fate.thing.is_node)) continue;
    fate.kind = FateKind::kUnexplained;  // it went without an entry
    fate.decision = -1;
    return;
  }
  if (fate.now.empty() && fate.kind != FateKind::kFolded) fate.kind = FateKind::kDead;
  if (fate.kind == FateKind::kSplit && fate.now.size() == 1) fate.kind = FateKind::kInside;
  const bool renamed = fate.kind == FateKind::kKept && fate.now[0].name != fate.thing.name;
  if (renamed) fate.kind = FateKind::kRenamed;
}

Fate Fates::of(const NamedThing& thing) const {
  Course course{.fate = {.thing = thing, .now = {thing}, .steps = {}, .gradient = {}}};
  for (std::size_t stage = first_; stage <= to_ && !course.fate.now.empty(); ++stage) {
    find_gradient(course.fate);
    advance(course, stage);
  }
  find_gradient(course.fate);
  settle(course);
  return std::move(course.fate);
}

std::vector<NamedThing> things_of(const Graph& graph) {
  std::vector<NamedThing> things;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    things.push_back({.is_node = true, .serial = node.serial, .name = node.name});
  }
  for (ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    things.push_back({.is_node = false, .serial = value.serial, .name = value.name});
  }
  return things;
}

std::vector<NamedThing> imported_things(const History& history, const Graph& imported) {
  std::vector<NamedThing> things;
  std::unordered_set<Serial> own;  // of the imported graph alone, or named otherwise in the model
  for (const RewriteEntry& entry : history[0].rewrites.entries) {
    if (entry.thing.serial != kNoSerial) {
      if (entry.kind == RewriteKind::kAdded) own.insert(entry.thing.serial);
      continue;
    }
    things.push_back(entry.thing);
    if (entry.kind == RewriteKind::kRenamed && !entry.others.empty()) {
      own.insert(entry.others[0].serial);
    }
  }
  for (NamedThing& thing : things_of(imported)) {
    if (!own.contains(thing.serial)) things.push_back(std::move(thing));
  }
  return things;
}

}  // namespace trainscope
