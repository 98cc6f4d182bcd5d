// Two graphs and a pass's notes -> the log of what it did.
#include "engine/ir/rewrite_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/ir/serial_index.h"

namespace trainscope {
namespace {

constexpr std::size_t kNamedReaders = 4;  // that an entry kUnread lists

void add_once(std::vector<NamedThing>& list, NamedThing thing) {
  if (std::ranges::find(list, thing) == list.end()) list.push_back(std::move(thing));
}

class LogMaker {
 public:
  LogMaker(const Graph& before, const Graph& after, const RewriteNotes& notes, RewriteRule pass)
      : first_new_(before.last_serial()),
        before_(before),
        after_(after),
        notes_(notes, after.last_serial()) {
    log_.rules.push_back(std::move(pass));
    log_.rules.insert(log_.rules.end(), notes.rules.begin(), notes.rules.end());
  }

  RewriteLog run() {
    find_gone_nodes();
    find_splits();
    for (NodeId id : before().order()) add_known(id);
    for (ValueId id : before().live_values()) add_known(id);
    for (NodeId id : after().order()) {
      if (is_new(after().node(id).serial)) add_new(id);
    }
    for (ValueId id : after().live_values()) {
      if (is_new(after().value(id).serial)) add_new(id);
    }
    return std::move(log_);
  }

 private:
  const Graph& before() const { return before_.graph(); }
  const Graph& after() const { return after_.graph(); }
  bool is_new(Serial serial) const { return serial > first_new_; }

  // ---- what is gone

  // The value that is there in the place of one that may be gone; kNoValue: nothing is.
  ValueId now(Serial value) const {
    for (;;) {
      const ValueId there = after_.value(value);
      if (there != kNoValue) return there;
      const RewriteNote* note = notes_.gone(value);
      if (note == nullptr) return kNoValue;
      value = note->other;
    }
  }

  // The node that does the work behind a value: what reshapes its result alone does none of it.
  NodeId worker_of(ValueId value) const {
    NodeId id = after().value(value).producer;
    while (id != kNoNode && after().node(id).op->is_view && is_new(after().node(id).serial)) {
      const NodeId behind = after().value(after().node(id).inputs[0]).producer;
      if (behind == kNoNode || !is_new(after().node(behind).serial)) break;
      id = behind;
    }
    return id;
  }

  // What has the place of a node that is gone, by the notes of it and of its results.
  RewriteEntry explained(NodeId id) const {
    const Node& node = before().node(id);
    RewriteEntry entry{.kind = RewriteKind::kRemoved, .thing = before_.named(id)};
    std::vector<NamedThing> nodes;
    std::vector<NamedThing> constants;
    std::vector<NamedThing> values;
    const auto add_target = [&](Serial of) {
      const RewriteNote* note = notes_.gone(of);
      const ValueId there = note == nullptr ? kNoValue : now(note->other);
      if (there == kNoValue) return;
      entry.rule = note->rule;
      const NodeId worker = worker_of(there);
      if (worker != kNoNode) return add_once(nodes, after_.named(worker));
      const bool is_constant = after().value(there).kind == ValueKind::kConstant;
      add_once(is_constant ? constants : values, after_.named(there));
    };
    add_target(node.serial);
    for (ValueId output : node.outputs) {
      const bool by_results = notes_.gone(node.serial) == nullptr;
      if (by_results && output != kNoValue) add_target(before().value(output).serial);
    }
    if (!nodes.empty()) {
      entry.kind = nodes.size() == 1 ? RewriteKind::kInside : RewriteKind::kSplit;
      entry.others = std::move(nodes);
    } else if (!constants.empty() || !values.empty()) {
      entry.kind = values.empty() ? RewriteKind::kFolded : RewriteKind::kReplaced;
      entry.others = values.empty() ? std::move(constants) : std::move(values);
    } else if (const RewriteNote* dead = notes_.dead(node.serial)) {
      entry.kind = RewriteKind::kDead;
      entry.rule = dead->rule;
    }
    return entry;
  }

  void find_gone_nodes() {
    for (NodeId id : before().order()) {
      const Serial serial = before().node(id).serial;
      if (after_.node(serial) != kNoNode) continue;
      const auto [at, fresh] = gone_nodes_.emplace(serial, explained(id));
      if (at->second.kind != RewriteKind::kInside) continue;
      taken_[at->second.others[0].serial].push_back(at->second.thing);
    }
  }

  // A node alone in whose place several new ones compute, as a composite op's do.
  void find_splits() {
    for (NodeId id : after().order()) {
      const Node& node = after().node(id);
      const RewriteNote* made = is_new(node.serial) ? notes_.made(node.serial) : nullptr;
      if (made == nullptr || node.op->is_view) continue;
      const auto gone = gone_nodes_.find(made->other);
      if (gone == gone_nodes_.end()) continue;
      RewriteEntry& entry = gone->second;
      const bool alone = entry.kind == RewriteKind::kSplit ||
                         (entry.kind == RewriteKind::kInside && is_new(entry.others[0].serial) &&
                          taken_[entry.others[0].serial].size() == 1);
      if (!alone) continue;
      add_once(entry.others, after_.named(id));
      if (entry.others.size() > 1) entry.kind = RewriteKind::kSplit;
    }
    for (NodeId id : before().order()) {
      const auto gone = gone_nodes_.find(before().node(id).serial);
      if (gone == gone_nodes_.end() || gone->second.kind != RewriteKind::kSplit) continue;
      const RewriteEntry& entry = gone->second;
      for (const NamedThing& other : entry.others) {
        if (is_new(other.serial)) add_once(taken_[other.serial], entry.thing);
      }
    }
  }

  RewriteEntry explained(ValueId id) {
    const Value& value = before().value(id);
    RewriteEntry entry{.kind = RewriteKind::kRemoved, .thing = before_.named(id)};
    const RewriteNote* note = notes_.gone(value.serial);
    const ValueId there = note == nullptr ? kNoValue : now(note->other);
    if (there != kNoValue && note->kind == NoteKind::kReplaced) {
      const bool folded =
          value.kind == ValueKind::kNode && after().value(there).kind == ValueKind::kConstant;
      entry.kind = folded ? RewriteKind::kFolded : RewriteKind::kReplaced;
      entry.others = {after_.named(there)};
      entry.rule = note->rule;
      taken_[after().value(there).serial].push_back(entry.thing);
      return entry;
    }
    if (value.producer != kNoNode) {
      const auto producer = gone_nodes_.find(before().node(value.producer).serial);
      if (producer == gone_nodes_.end()) return entry;
      const RewriteEntry& of_node = producer->second;
      const bool spread = of_node.kind == RewriteKind::kSplit;
      const bool unread = value.uses.empty() && !before().is_output(id);
      entry.kind = spread ? RewriteKind::kInside : of_node.kind;
      // Its node's other results are elsewhere; this one was none.
      if (of_node.kind == RewriteKind::kReplaced || of_node.kind == RewriteKind::kFolded) {
        entry.kind = unread ? RewriteKind::kDead : RewriteKind::kRemoved;
        entry.rule = of_node.rule;
        return entry;
      }
      entry.others = of_node.others;
      entry.rule = of_node.rule;
      return entry;
    }
    if (const RewriteNote* dead = notes_.dead(value.serial)) {
      entry.kind = RewriteKind::kDead;
      entry.rule = dead->rule;
    }
    return entry;
  }

  // ---- what was there before

  void add_known(NodeId id) {
    const Node& was = before().node(id);
    const NodeId there = after_.node(was.serial);
    if (there == kNoNode) {
      log_.entries.push_back(gone_nodes_.at(was.serial));
      return;
    }
    const Node& is = after().node(there);
    if (is.name != was.name) add_change(before_.named(id), RewriteKind::kRenamed, is.name);
    std::string what = changes(was, is);
    if (!what.empty()) add_change(before_.named(id), RewriteKind::kChanged, std::move(what));
    RewriteEntry entry{.kind = RewriteKind::kUnread, .thing = before_.named(id)};
    for (ValueId output : was.outputs) {
      if (output == kNoValue) continue;
      const ValueId stays = after_.value(before().value(output).serial);
      if (stays != kNoValue && is_read(after(), stays)) return;
      if (is_read(before(), output)) add_readers(entry, output);
    }
    if (!entry.others.empty()) log_.entries.push_back(std::move(entry));
  }

  static bool is_read(const Graph& graph, ValueId v) {
    return !graph.value(v).uses.empty() || graph.is_output(v);
  }

  void add_readers(RewriteEntry& entry, ValueId was) const {
    for (const Use& use : before().value(was).uses) {
      if (entry.others.size() == kNamedReaders) return;
      add_once(entry.others, before_.named(use.node));
    }
  }

  void add_known(ValueId id) {
    const Value& was = before().value(id);
    const ValueId there = after_.value(was.serial);
    if (there == kNoValue) {
      log_.entries.push_back(explained(id));
      return;
    }
    const Value& is = after().value(there);
    if (is.name != was.name) add_change(before_.named(id), RewriteKind::kRenamed, is.name);
    if (is.type != was.type) {
      add_change(before_.named(id), RewriteKind::kChanged,
                 fmt::format("{} -> {}", type_text(was.type), type_text(is.type)));
    }
    if (is_read(after(), there) || !is_read(before(), id)) return;
    RewriteEntry entry{.kind = RewriteKind::kUnread, .thing = before_.named(id)};
    add_readers(entry, id);
    log_.entries.push_back(std::move(entry));
  }

  void add_change(NamedThing thing, RewriteKind kind, std::string detail) {
    log_.entries.push_back({.kind = kind, .thing = std::move(thing), .detail = std::move(detail)});
  }

  // What input `v` of a node that stays is expected to be after the pass.
  Serial expected(ValueId v) const {
    if (v == kNoValue) return kNoSerial;
    const Serial serial = before().value(v).serial;
    const RewriteNote* note = notes_.gone(serial);
    if (note == nullptr || note->kind != NoteKind::kReplaced) return serial;
    const ValueId there = now(note->other);
    return there == kNoValue ? serial : after().value(there).serial;
  }

  std::string input_changes(const Node& was, const Node& is) const {
    const auto name = [](const Graph& graph, ValueId v) {
      return v == kNoValue ? std::string("-") : "'" + printable(graph.value(v).name) + "'";
    };
    if (was.inputs.size() != is.inputs.size()) return "number of inputs";
    std::string text;
    for (std::size_t i = 0; i < is.inputs.size(); ++i) {
      const Serial there =
          is.inputs[i] == kNoValue ? kNoSerial : after().value(is.inputs[i]).serial;
      if (there == expected(was.inputs[i])) continue;
      if (!text.empty()) text += ", ";
      text += fmt::format("input {}: {} -> {}", i, name(before(), was.inputs[i]),
                          name(after(), is.inputs[i]));
    }
    return text;
  }

  std::string changes(const Node& was, const Node& is) const {
    std::string text = input_changes(was, is);
    const auto add = [&text](std::string_view what) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
    };
    if (was.op != is.op) add(fmt::format("{} -> {}", was.op->name, is.op->name));
    if (!(was.attributes == is.attributes)) add("attributes");
    if (was.phase != is.phase) add(fmt::format("{} -> {}", name_of(was.phase), name_of(is.phase)));
    return text;
  }

  // ---- what is new

  // A node of either graph; it may have come and gone in between.
  bool add_parent(std::vector<NamedThing>& parents, Serial serial) const {
    if (serial == kNoSerial) return false;
    if (const NodeId was = before_.node(serial); was != kNoNode) {
      add_once(parents, before_.named(was));
    } else if (const NodeId is = after_.node(serial); is != kNoNode) {
      add_once(parents, after_.named(is));
    } else {
      return false;
    }
    return true;
  }

  void add_new(NodeId id) {
    const Node& node = after().node(id);
    RewriteEntry entry{.kind = RewriteKind::kAdded, .thing = after_.named(id)};
    const RewriteNote* made = notes_.made(node.serial);
    if (made != nullptr) entry.rule = made->rule;
    const auto taken = taken_.find(node.serial);
    if (made != nullptr && made->kind == NoteKind::kCopy) {
      entry.kind = RewriteKind::kRematerialized;
      add_parent(entry.others, made->other);
    } else if (taken != taken_.end()) {
      entry.others = taken->second;
    } else if (!(made != nullptr && add_parent(entry.others, made->other)) &&
               !add_parent(entry.others, node.provenance.backward_of)) {
      add_producers(entry.others, node);
    }
    log_.entries.push_back(std::move(entry));
  }

  // Of what a pass appends: the nodes whose results it reads.
  void add_producers(std::vector<NamedThing>& parents, const Node& node) const {
    std::unordered_set<NodeId> known;
    for (ValueId input : node.inputs) {
      const NodeId producer = input == kNoValue ? kNoNode : after().value(input).producer;
      if (producer != kNoNode && known.insert(producer).second) {
        parents.push_back(after_.named(producer));
      }
    }
  }

  void add_new(ValueId id) {
    const Value& value = after().value(id);
    RewriteEntry entry{.kind = RewriteKind::kAdded, .thing = after_.named(id)};
    const Serial maker =
        value.producer == kNoNode ? value.serial : after().node(value.producer).serial;
    const RewriteNote* made = notes_.made(maker);
    if (made != nullptr) entry.rule = made->rule;
    if (made != nullptr && made->kind == NoteKind::kCopy) {
      const NodeId original = after_.node(made->other);
      const auto output = static_cast<std::size_t>(value.producer_output);
      if (original != kNoNode && output < after().node(original).outputs.size()) {
        entry.kind = RewriteKind::kRematerialized;
        entry.others = {after_.named(after().node(original).outputs[output])};
      }
    } else if (const auto taken = taken_.find(value.serial); taken != taken_.end()) {
      entry.others = taken->second;
    } else if (value.producer != kNoNode) {
      entry.others = {after_.named(value.producer)};
    } else if (made != nullptr) {
      add_parent(entry.others, made->other);
    }
    log_.entries.push_back(std::move(entry));
  }

  Serial first_new_;
  SerialIndex before_;
  SerialIndex after_;
  NoteIndex notes_;
  RewriteLog log_;
  std::unordered_map<Serial, RewriteEntry> gone_nodes_;
  std::unordered_map<Serial, std::vector<NamedThing>> taken_;  // by what took over: what it took
};

}  // namespace

std::string_view name_of(RewriteKind kind) {
  constexpr std::string_view kNames[kRewriteKinds] = {
      "added",  "rematerialized", "renamed", "changed", "unread", "replaced",
      "inside", "split",          "folded",  "dead",    "removed"};
  return kNames[static_cast<std::size_t>(kind)];
}

RewriteLog rewrite_log(const Graph& before, const Graph& after, const RewriteNotes& notes,
                       RewriteRule pass) {
  return LogMaker(before, after, notes, std::move(pass)).run();
}

}  // namespace trainscope
