// Mutations that keep uses, order, names and provenance consistent.
#include "engine/ir/rewriter.h"

#include <utility>

#include "engine/core/error.h"

namespace trainscope {

Rewriter::Rewriter(Graph& graph, const OpTable& ops, std::string_view pass,
                   const Evaluate* evaluate)
    : graph_(graph), builder_(graph, ops), pass_(pass) {
  builder_.set_evaluate(evaluate);
}

void Rewriter::set_rule(std::string_view name, std::string_view reason) {
  rule_ = graph_.notes.rule(name, reason);
  builder_.set_rule(rule_);
}

void Rewriter::note(NoteKind kind, Serial of, Serial other) {
  graph_.notes.list.push_back({.kind = kind, .rule = rule_, .of = of, .other = other});
}

Builder& Rewriter::before(NodeId node) {
  const Node& next = graph_.node(node);
  builder_.insert_before(node);
  builder_.set_phase(next.phase);
  builder_.set_provenance({.sources = next.provenance.sources,
                           .pass = pass_,
                           .backward_of = next.provenance.backward_of});
  builder_.set_made_of(next.serial);
  changed_ = true;
  return builder_;
}

Builder& Rewriter::at_end(Phase phase) {
  builder_.insert_before(kNoNode);
  builder_.set_phase(phase);
  builder_.set_provenance({.sources = {}, .pass = pass_});
  builder_.set_made_of(kNoSerial);
  changed_ = true;
  return builder_;
}

bool Rewriter::can_replace(ValueId old_value, ValueId new_value) const {
  if (!graph_.is_output(old_value)) return true;
  const Value& value = graph_.value(new_value);
  return value.kind == ValueKind::kNode && !graph_.is_output(new_value);
}

void Rewriter::replace(ValueId old_value, ValueId new_value) {
  if (old_value == new_value) return;
  changed_ = true;
  note(NoteKind::kReplaced, graph_.value(old_value).serial, graph_.value(new_value).serial);
  const bool named = graph_.is_output(old_value);
  const std::vector<Use> uses = graph_.value(old_value).uses;
  for (const Use& use : uses) graph_.set_input(use.node, use.input, new_value);
  graph_.replace_output(old_value, new_value);
  NodeId from = graph_.value(old_value).producer;
  NodeId to = graph_.value(new_value).producer;
  if (from != kNoNode && to != kNoNode) {
    merge_sources(to, from);
  }
  for (Serial of : std::exchange(graph_.value(old_value).gradient_of, {})) {
    graph_.value(new_value).gradient_of.add(of);
  }
  if (!named) return;
  std::string name = graph_.value(old_value).name;
  graph_.rename(old_value, graph_.unique_name(name + "/replaced"));
  graph_.rename(new_value, std::move(name));
}

// The union of both source lists, keeping the order of first appearance. A node of the forward
// phase is there for the model's own sake: what the backward phase reads of it makes it no part of
// a gradient, whose source would count its time twice.
void Rewriter::merge_sources(NodeId into, NodeId from) {
  if (graph_.node(into).phase < graph_.node(from).phase) return;
  Provenance& provenance = graph_.node(into).provenance;
  if (graph_.node(into).phase != Phase::kForward && provenance.backward_of == kNoSerial) {
    provenance.backward_of = graph_.node(from).provenance.backward_of;
  }
  SourceNames& sources = provenance.sources;
  auto [known, fresh] = known_sources_.try_emplace(into);
  if (fresh) known->second.insert(sources.begin(), sources.end());
  for (const std::string& source : graph_.node(from).provenance.sources) {
    if (known->second.insert(source).second) sources.add(source);
  }
}

void Rewriter::replace_node(NodeId node, const std::vector<ValueId>& new_outputs) {
  const std::vector<ValueId> old_outputs = graph_.node(node).outputs;
  for (std::size_t i = 0; i < old_outputs.size(); ++i) {
    if (old_outputs[i] != kNoValue) replace(old_outputs[i], new_outputs[i]);
  }
  erase(node);
}

void Rewriter::set_input(NodeId node, int input, ValueId value) {
  graph_.set_input(node, input, value);
  changed_ = true;
}

void Rewriter::erase(NodeId node) {
  graph_.erase_node(node);
  changed_ = true;
}

void Rewriter::erase_value(ValueId value) {
  graph_.erase_value(value);
  changed_ = true;
}

void Rewriter::erase_dead(NodeId node) {
  note(NoteKind::kDead, graph_.node(node).serial, kNoSerial);
  erase(node);
}

void Rewriter::erase_dead(ValueId value) {
  note(NoteKind::kDead, graph_.value(value).serial, kNoSerial);
  erase_value(value);
}

void Rewriter::erase_into(NodeId node, ValueId result) {
  const Serial into = graph_.value(result).serial;
  note(NoteKind::kInside, graph_.node(node).serial, into);
  for (ValueId output : graph_.node(node).outputs) {
    if (output != kNoValue) note(NoteKind::kInside, graph_.value(output).serial, into);
  }
  erase(node);
}

void Rewriter::made_of(NodeId made, NodeId parent) {
  note(NoteKind::kMadeOf, graph_.node(made).serial, graph_.node(parent).serial);
}

void Rewriter::copies(NodeId made, NodeId original) {
  note(NoteKind::kCopy, graph_.node(made).serial, graph_.node(original).serial);
}

void Rewriter::make_constant(ValueId value) {
  Value constant;
  constant.name = graph_.unique_name(graph_.value(value).name + "/known");
  constant.type = graph_.value(value).type;
  constant.kind = ValueKind::kConstant;
  constant.data = graph_.value(value).data;
  CHECK_INVARIANT(constant.data != nullptr);
  ValueId id = graph_.add_value(std::move(constant));
  replace(value, id);
}

void Rewriter::fold(NodeId node) {
  bool read = false;
  for (ValueId output : std::vector<ValueId>(graph_.node(node).outputs)) {
    if (output == kNoValue || graph_.value(output).uses.empty()) continue;
    make_constant(output);
    read = true;
  }
  return read ? erase(node) : erase_dead(node);
}

}  // namespace trainscope
