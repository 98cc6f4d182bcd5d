// Mutations that keep uses, order, names and provenance consistent.
#include "engine/ir/rewriter.h"

#include "engine/core/error.h"

namespace trainscope {

Rewriter::Rewriter(Graph& graph, const OpTable& ops, std::string_view pass,
                   const Evaluate* evaluate)
    : graph_(graph), builder_(graph, ops), pass_(pass) {
  builder_.set_evaluate(evaluate);
}

Builder& Rewriter::before(NodeId node) {
  builder_.insert_before(node);
  builder_.set_phase(graph_.node(node).phase);
  builder_.set_provenance({.sources = graph_.node(node).provenance.sources, .pass = pass_});
  changed_ = true;
  return builder_;
}

Builder& Rewriter::at_end(Phase phase) {
  builder_.insert_before(kNoNode);
  builder_.set_phase(phase);
  builder_.set_provenance({.sources = {}, .pass = pass_});
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
  const bool named = graph_.is_output(old_value);
  const std::vector<Use> uses = graph_.value(old_value).uses;
  for (const Use& use : uses) graph_.set_input(use.node, use.input, new_value);
  graph_.replace_output(old_value, new_value);
  NodeId from = graph_.value(old_value).producer;
  NodeId to = graph_.value(new_value).producer;
  if (from != kNoNode && to != kNoNode) {
    merge_sources(to, from);
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
  SourceNames& sources = graph_.node(into).provenance.sources;
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

}  // namespace trainscope
