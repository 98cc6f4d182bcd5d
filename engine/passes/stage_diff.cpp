// Rows of a diff: first what the first stage has, then what the second alone has.
#include "engine/passes/stage_diff.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/ir/serial_index.h"

namespace trainscope {
namespace {

std::string named_text(const Graph& graph, ValueId v) {
  return v == kNoValue ? std::string("-") : "'" + printable(graph.value(v).name) + "'";
}

std::string value_changes(const Value& a, const Value& b) {
  std::string text;
  if (a.type != b.type) text = fmt::format("{} -> {}", type_text(a.type), type_text(b.type));
  if (a.kind != b.kind) {
    text += fmt::format("{}{} -> {}", text.empty() ? "" : ", ", name_of(a.kind), name_of(b.kind));
  }
  return text;
}

// How two nodes differ but for their inputs.
std::string node_changes(const Node& a, const Node& b) {
  std::string text;
  const auto add = [&text](std::string_view what) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
  };
  if (a.op != b.op) add(fmt::format("{} -> {}", a.op->name, b.op->name));
  if (!(a.attributes == b.attributes)) {
    add(fmt::format("({}) -> ({})", printable(attributes_text(a.attributes)),
                    printable(attributes_text(b.attributes))));
  }
  if (a.phase != b.phase) add(fmt::format("{} -> {}", name_of(a.phase), name_of(b.phase)));
  return text;
}

struct NodeOfGraph {
  const Graph& graph;
  const Node& node;
};

// `same` says whether a value of the first graph is one of the second.
template <typename Same>
std::string input_changes_text(const NodeOfGraph& a, const NodeOfGraph& b, Same same) {
  const std::vector<ValueId>& inputs_a = a.node.inputs;
  const std::vector<ValueId>& inputs_b = b.node.inputs;
  if (inputs_a.size() != inputs_b.size()) {
    return fmt::format("{} inputs -> {}", inputs_a.size(), inputs_b.size());
  }
  std::string text;
  for (std::size_t i = 0; i < inputs_a.size(); ++i) {
    const ValueId was = inputs_a[i];
    const ValueId is = inputs_b[i];
    if ((was == kNoValue) == (is == kNoValue) && (was == kNoValue || same(was, is))) continue;
    text += fmt::format("{}input {}: {} -> {}", text.empty() ? "" : ", ", i,
                        named_text(a.graph, was), named_text(b.graph, is));
  }
  return text;
}

std::string joined(std::string a, const std::string& b) {
  if (!a.empty() && !b.empty()) a += ", ";
  return a + b;
}

class DiffMaker {
 public:
  DiffMaker(const std::shared_ptr<const History>& history, const StageGraph& a, const StageGraph& b)
      : history_(*history),
        a_(a.graph),
        b_(b.graph),
        fates_(history, static_cast<std::ptrdiff_t>(a.stage), b.stage, b.graph) {}

  StageDiff run() {
    for (const NamedThing& thing : things_of(a_.graph())) add_known(thing);
    for (const NamedThing& thing : things_of(b_.graph())) {
      if (!a_.has(thing.serial)) add_new(thing);
    }
    return std::move(diff_);
  }

 private:
  void add(DiffRow row) {
    ++(row.thing.is_node ? diff_.nodes : diff_.values)[std::string(row.kind)];
    if (row.kind == name_of(FateKind::kUnexplained)) ++diff_.unexplained;
    diff_.rows.push_back(std::move(row));
  }

  void set_reason(DiffRow& row, const FateStep& step) const {
    row.stage = history_[step.stage].label;
    row.rule = rule_of(history_, step).name;
    row.reason = rule_of(history_, step).reason;
  }

  void add_known(const NamedThing& thing) {
    const Fate fate = fates_.of(thing);
    DiffRow row{.kind = name_of(fate.kind), .thing = thing, .others = fate.now};
    if (const FateStep* step = fate.decided()) set_reason(row, *step);
    row.reason = reason_of(history_, fate);
    row.changes = changes(thing, fate);
    add(std::move(row));
  }

  // What is different about what both have.
  std::string changes(const NamedThing& thing, const Fate& fate) const {
    if (fate.kind != FateKind::kKept && fate.kind != FateKind::kRenamed) return {};
    const NamedThing& now = fate.now[0];
    if (!thing.is_node) {
      return value_changes(a_.graph().value(a_.value(thing.serial)),
                           b_.graph().value(b_.value(now.serial)));
    }
    const Node& was = a_.graph().node(a_.node(thing.serial));
    const Node& is = b_.graph().node(b_.node(now.serial));
    const auto same = [this](ValueId v, ValueId w) {
      const Serial serial = b_.graph().value(w).serial;
      if (a_.graph().value(v).serial == serial) return true;
      const Fate of_input = fates_.of(a_.named(v));
      return !of_input.now.empty() && of_input.now[0].serial == serial;
    };
    return joined(node_changes(was, is),
                  input_changes_text({.graph = a_.graph(), .node = was},
                                     {.graph = b_.graph(), .node = is}, same));
  }

  void add_new(const NamedThing& thing) {
    const FateStep* step = fates_.added(thing.serial);
    if (step == nullptr) {
      add({.kind = name_of(FateKind::kUnexplained),
           .thing = thing,
           .reason = "it is new, and no rewrite log says why"});
      return;
    }
    DiffRow row{.kind = name_of(step->entry->kind), .thing = thing, .others = parents(*step)};
    set_reason(row, *step);
    add(std::move(row));
  }

  // Parents that came in between are as good as theirs.
  std::vector<NamedThing> parents(const FateStep& of) const {
    std::vector<NamedThing> found;
    std::vector<const RewriteEntry*> open{of.entry.get()};
    std::unordered_set<Serial> seen{of.entry->thing.serial};
    while (!open.empty()) {
      const RewriteEntry& entry = *open.back();
      open.pop_back();
      for (const NamedThing& parent : entry.others) {
        if (!seen.insert(parent.serial).second) continue;
        const FateStep* step = fates_.added(parent.serial);
        if (step == nullptr || a_.has(parent.serial)) {
          found.push_back(parent);
        } else {
          open.push_back(step->entry.get());
        }
      }
    }
    return found;
  }

  const History& history_;
  SerialIndex a_;
  SerialIndex b_;
  Fates fates_;
  StageDiff diff_;
};

// ---- stages of two compilations

class GraphComparison {
 public:
  GraphComparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  StageDiff run() {
    match_by_name();
    match_by_source();
    match_values_of_nodes();
    for (NodeId id : a_.order()) add_of_a(id);
    for (ValueId id : a_.live_values()) add_of_a(id);
    for (NodeId id : b_.order()) {
      if (!taken_nodes_.contains(id)) add_only("only in B", b_, id);
    }
    for (ValueId id : b_.live_values()) {
      if (!taken_values_.contains(id)) add_only("only in B", b_, id);
    }
    return std::move(diff_);
  }

 private:
  void pair(NodeId a, NodeId b) {
    nodes_.emplace(a, b);
    taken_nodes_.insert(b);
  }
  void pair(ValueId a, ValueId b) {
    values_.emplace(a, b);
    taken_values_.insert(b);
  }

  void match_by_name() {
    for (NodeId id : a_.order()) {
      const NodeId same = b_.find_node(a_.node(id).name);
      if (same != kNoNode && b_.node(same).op == a_.node(id).op) pair(id, same);
    }
    for (ValueId id : a_.live_values()) {
      const ValueId same = b_.find(a_.value(id).name);
      if (same != kNoValue) pair(id, same);
    }
  }

  static std::string source_key(const Node& node) {
    return fmt::format("{}|{}|{}", node.op->name, name_of(node.phase),
                       fmt::join(node.provenance.sources, "|"));
  }

  // The first of a key with the first, the second with the second.
  void match_by_source() {
    std::unordered_map<std::string, std::vector<NodeId>> left;
    const std::vector<NodeId> order = b_.order();
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (!taken_nodes_.contains(*id)) left[source_key(b_.node(*id))].push_back(*id);
    }
    for (NodeId id : a_.order()) {
      if (nodes_.contains(id)) continue;
      const auto found = left.find(source_key(a_.node(id)));
      if (found == left.end() || found->second.empty()) continue;
      pair(id, found->second.back());
      found->second.pop_back();
    }
  }

  void match_values_of_nodes() {
    for (ValueId id : a_.live_values()) {
      const Value& value = a_.value(id);
      const auto maker = nodes_.find(value.producer);
      if (values_.contains(id) || maker == nodes_.end()) continue;
      const std::vector<ValueId>& outputs = b_.node(maker->second).outputs;
      const auto output = static_cast<std::size_t>(value.producer_output);
      if (output >= outputs.size() || outputs[output] == kNoValue) continue;
      if (!taken_values_.contains(outputs[output])) pair(id, outputs[output]);
    }
  }

  static NamedThing named(const Graph& graph, NodeId id) {
    return {.is_node = true, .serial = graph.node(id).serial, .name = graph.node(id).name};
  }
  static NamedThing named(const Graph& graph, ValueId id) {
    return {.is_node = false, .serial = graph.value(id).serial, .name = graph.value(id).name};
  }

  void add(DiffRow row) {
    ++(row.thing.is_node ? diff_.nodes : diff_.values)[std::string(row.kind)];
    diff_.rows.push_back(std::move(row));
  }

  void add_pair(NamedThing a, NamedThing b, std::string changes) {
    if (a.name != b.name) changes = joined(std::move(changes), "name");
    add({.kind = changes.empty() ? "same" : "differs",
         .thing = std::move(a),
         .others = {std::move(b)},
         .changes = std::move(changes)});
  }

  void add_of_a(NodeId id) {
    const auto found = nodes_.find(id);
    if (found == nodes_.end()) return add_only("only in A", a_, id);
    const Node& a = a_.node(id);
    const Node& b = b_.node(found->second);
    const auto same = [this](ValueId v, ValueId w) {
      const auto other = values_.find(v);
      return other != values_.end() && other->second == w;
    };
    add_pair(named(a_, id), named(b_, found->second),
             joined(node_changes(a, b),
                    input_changes_text({.graph = a_, .node = a}, {.graph = b_, .node = b}, same)));
  }

  void add_of_a(ValueId id) {
    const auto found = values_.find(id);
    if (found == values_.end()) return add_only("only in A", a_, id);
    add_pair(named(a_, id), named(b_, found->second),
             value_changes(a_.value(id), b_.value(found->second)));
  }

  void add_only(std::string_view kind, const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const std::string attributes = attributes_text(node.attributes);
    std::string what(node.op->name);
    if (!attributes.empty()) what += fmt::format(" ({})", printable(attributes));
    add({.kind = kind, .thing = named(graph, id), .changes = std::move(what)});
  }

  void add_only(std::string_view kind, const Graph& graph, ValueId id) {
    add({.kind = kind, .thing = named(graph, id), .changes = type_text(graph.value(id).type)});
  }

  const Graph& a_;
  const Graph& b_;
  std::unordered_map<NodeId, NodeId> nodes_;
  std::unordered_map<ValueId, ValueId> values_;
  std::unordered_set<NodeId> taken_nodes_;
  std::unordered_set<ValueId> taken_values_;
  StageDiff diff_;
};

}  // namespace

StageDiff diff_stages(const std::shared_ptr<const History>& history, const StageGraph& a,
                      const StageGraph& b) {
  return DiffMaker(history, a, b).run();
}

StageDiff compare_graphs(const Graph& a, const Graph& b) { return GraphComparison(a, b).run(); }

}  // namespace trainscope
