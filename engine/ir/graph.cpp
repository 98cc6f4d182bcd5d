// Graph storage: values, nodes, the linked order, names.
#include "engine/ir/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"

namespace trainscope {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "?";
}

std::string_view name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kParameter:
      return "parameter";
    case ValueKind::kState:
      return "state";
    case ValueKind::kConstant:
      return "constant";
    case ValueKind::kNode:
      return "node";
  }
  return "?";
}

std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> order;
  order.reserve(live_nodes_);
  for (NodeId id = first_; id != kNoNode; id = node(id).next) order.push_back(id);
  return order;
}

std::vector<ValueId> Graph::live_values() const {
  std::vector<ValueId> live;
  const std::vector<Value>& values = shared_->values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].erased) live.push_back(static_cast<ValueId>(i));
  }
  return live;
}

std::vector<ValueId> Graph::values_of(ValueKind kind) const {
  std::vector<ValueId> found;
  const std::vector<Value>& values = shared_->values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].erased && values[i].kind == kind) found.push_back(static_cast<ValueId>(i));
  }
  return found;
}

ValueId Graph::find(std::string_view value_name) const {
  return static_cast<ValueId>(shared_->by_name.find(shared_->values, value_name));
}

NodeId Graph::find_node(std::string_view node_name) const {
  return static_cast<NodeId>(shared_->nodes_by_name.find(shared_->nodes, node_name));
}

Graph::OutputIndex& Graph::OutputIndex::operator=(OutputIndex&&) noexcept {
  is_output_.clear();
  has_gradient_.clear();
  for (auto* count : {&values_, &outputs_, &updates_, &gradients_}) *count = 0;
  loss_ = kNoValue;
  return *this;
}

Graph::OutputIndex& Graph::OutputIndex::operator=(const OutputIndex&) {
  return *this = OutputIndex();
}

bool Graph::OutputIndex::covers(const Graph& graph) const {
  const auto order = std::memory_order_acquire;
  return values_.load(order) == graph.value_capacity() && loss_.load(order) == graph.loss &&
         outputs_.load(order) == graph.outputs.size() &&
         updates_.load(order) == graph.updates.size() &&
         gradients_.load(order) == graph.gradients.size();
}

// Passes ask is_output() for every value: a search through the lists would be quadratic.
void Graph::OutputIndex::update(const Graph& graph) {
  if (covers(graph)) return;
  const std::lock_guard lock(mutex_);
  if (!covers(graph)) extend(graph);
}

void Graph::OutputIndex::extend(const Graph& graph) {
  const bool grown = loss_ == graph.loss && values_ <= graph.value_capacity() &&
                     outputs_ <= graph.outputs.size() && updates_ <= graph.updates.size() &&
                     gradients_ <= graph.gradients.size();
  if (!grown) *this = OutputIndex();
  is_output_.resize(graph.value_capacity(), false);
  has_gradient_.resize(graph.value_capacity(), false);
  if (graph.loss != kNoValue) is_output_[index(graph.loss)] = true;
  for (std::size_t i = outputs_; i < graph.outputs.size(); ++i) {
    is_output_[index(graph.outputs[i])] = true;
  }
  for (std::size_t i = updates_; i < graph.updates.size(); ++i) {
    is_output_[index(graph.updates[i].value)] = true;
  }
  for (std::size_t i = gradients_; i < graph.gradients.size(); ++i) {
    is_output_[index(graph.gradients[i].gradient)] = true;
    has_gradient_[index(graph.gradients[i].of)] = true;
  }
  values_ = graph.value_capacity();
  outputs_ = graph.outputs.size();
  updates_ = graph.updates.size();
  gradients_ = graph.gradients.size();
  loss_ = graph.loss;
}

// `to` stands wherever `from` stood in the lists.
void Graph::OutputIndex::exchange(const Graph& graph, ValueId from, ValueId to) {
  for (std::vector<bool>* known : {&is_output_, &has_gradient_}) {
    if ((*known)[index(from)]) (*known)[index(to)] = true;
    (*known)[index(from)] = false;
  }
  loss_ = graph.loss;
}

bool Graph::is_output(ValueId id) const {
  output_index_.update(*this);
  return output_index_.is_output(id);
}

void Graph::release_outputs(std::span<const ValueId> released) {
  std::erase_if(outputs,
                [released](ValueId v) { return std::ranges::find(released, v) != released.end(); });
  output_index_ = {};  // it would not see other outputs in their places
}

bool Graph::replace_output(ValueId from, ValueId to) {
  output_index_.update(*this);
  if (!output_index_.is_output(from) && !output_index_.has_gradient(from)) return false;
  const auto exchange = [from, to](ValueId& v) {
    if (v == from) v = to;
  };
  for (ValueId& output : outputs) exchange(output);
  for (Update& update : updates) exchange(update.value);
  for (GradientOf& gradient : gradients) {
    exchange(gradient.gradient);
    exchange(gradient.of);
  }
  exchange(loss);
  output_index_.exchange(*this, from, to);
  return true;
}

std::string Graph::unique_name(std::string_view wanted) {
  std::string base(wanted);
  if (find(base) == kNoValue) return base;
  int& suffix = name_hints_[base];
  for (;;) {
    std::string candidate = fmt::format("{}_{}", base, ++suffix);
    if (find(candidate) == kNoValue) return candidate;
  }
}

std::string Graph::unique_node_name(std::string wanted) {
  if (wanted.empty()) wanted = "node";
  if (find_node(wanted) == kNoNode) return wanted;
  int& suffix = node_name_hints_[wanted];
  for (;;) {
    std::string candidate = fmt::format("{}_{}", wanted, ++suffix);
    if (find_node(candidate) == kNoNode) return candidate;
  }
}

Serial Graph::next_serial() {
  last_serial_ = static_cast<Serial>(static_cast<std::int32_t>(last_serial_) + 1);
  return last_serial_;
}

void Graph::restore_serial(ValueId id, Serial serial) {
  value(id).serial = serial;
  last_serial_ = std::max(last_serial_, serial);
}

void Graph::restore_serial(NodeId id, Serial serial) {
  node(id).serial = serial;
  last_serial_ = std::max(last_serial_, serial);
}

ValueId Graph::add_value(Value value) {
  Storage& storage = own();
  value.serial = next_serial();
  auto id = static_cast<ValueId>(storage.values.size());
  storage.values.push_back(std::move(value));
  bool fresh = storage.by_name.add(storage.values, static_cast<std::int32_t>(id));
  CHECK_INVARIANT(fresh);
  return id;
}

NodeId Graph::add_node(Node node, const std::vector<Value>& output_values, NodeId before) {
  auto id = static_cast<NodeId>(node_capacity());
  node.outputs.clear();
  for (std::size_t i = 0; i < output_values.size(); ++i) {
    if (output_values[i].name.empty()) {
      node.outputs.push_back(kNoValue);
      continue;
    }
    Value output = output_values[i];
    output.kind = ValueKind::kNode;
    output.producer = id;
    output.producer_output = static_cast<int>(i);
    node.outputs.push_back(add_value(std::move(output)));
  }
  const std::size_t inputs_of_node = node.inputs.size();
  node.use_slots.assign(inputs_of_node, 0);
  node.name = unique_node_name(std::move(node.name));
  node.serial = next_serial();
  Storage& storage = own();
  storage.nodes.push_back(std::move(node));
  const bool fresh = storage.nodes_by_name.add(storage.nodes, static_cast<std::int32_t>(id));
  CHECK_INVARIANT(fresh);
  for (std::size_t i = 0; i < inputs_of_node; ++i) add_use(id, i);
  link(id, before);
  ++live_nodes_;
  return id;
}

void Graph::link(NodeId id, NodeId before) {
  Node& n = node(id);
  n.next = before;
  n.previous = before == kNoNode ? last_ : node(before).previous;
  (n.previous == kNoNode ? first_ : node(n.previous).next) = id;
  (before == kNoNode ? last_ : node(before).previous) = id;
}

void Graph::add_use(NodeId id, std::size_t input) {
  Node& n = node(id);
  if (n.inputs[input] == kNoValue) return;
  std::vector<Use>& uses = value(n.inputs[input]).uses;
  n.use_slots[input] = uses.size();
  uses.push_back({id, static_cast<int>(input)});
}

// The last use takes the free place: a value may have 100,000 readers.
void Graph::remove_use(NodeId id, std::size_t input) {
  const Node& n = node(id);
  if (n.inputs[input] == kNoValue) return;
  std::vector<Use>& uses = value(n.inputs[input]).uses;
  const std::size_t slot = n.use_slots[input];
  uses[slot] = uses.back();
  node(uses[slot].node).use_slots[static_cast<std::size_t>(uses[slot].input)] = slot;
  uses.pop_back();
}

void Graph::set_input(NodeId id, int input, ValueId new_value) {
  const auto i = static_cast<std::size_t>(input);
  if (node(id).inputs[i] == new_value) return;
  remove_use(id, i);
  node(id).inputs[i] = new_value;
  add_use(id, i);
}

void Graph::erase_node(NodeId id) {
  Node& n = node(id);
  CHECK_INVARIANT(!n.erased);
  for (ValueId output : n.outputs) {
    if (output != kNoValue) erase_value(output);
  }
  for (std::size_t i = 0; i < n.inputs.size(); ++i) set_input(id, static_cast<int>(i), kNoValue);
  (n.previous == kNoNode ? first_ : node(n.previous).next) = n.next;
  (n.next == kNoNode ? last_ : node(n.next).previous) = n.previous;
  shared_->nodes_by_name.erase(shared_->nodes, static_cast<std::int32_t>(id));
  n.erased = true;
  --live_nodes_;
}

void Graph::erase_value(ValueId id) {
  Value& v = value(id);
  CHECK_INVARIANT(v.uses.empty() && !is_output(id));
  std::erase(inputs, id);
  shared_->by_name.erase(shared_->values, static_cast<std::int32_t>(id));
  v.erased = true;
  v.data.reset();
}

void Graph::rename(ValueId id, std::string new_name) {
  Value& v = value(id);
  if (v.name == new_name) return;
  shared_->by_name.erase(shared_->values, static_cast<std::int32_t>(id));
  v.name = std::move(new_name);
  bool fresh = shared_->by_name.add(shared_->values, static_cast<std::int32_t>(id));
  CHECK_INVARIANT(fresh);
}

void Graph::release_initial() {
  for (Value& value : shared_->values) {
    if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kState) value.data = {};
  }
}

Graph Graph::reordered(std::span<const NodeId> nodes) const {
  CHECK_INVARIANT(nodes.size() == live_nodes_);
  Graph copy;
  copy.name = name;
  copy.opset = opset;
  const std::vector<Value>& values = shared_->values;
  copy.shared_->nodes.reserve(nodes.size());
  copy.shared_->values.reserve(static_cast<std::size_t>(
      std::ranges::count_if(values, [](const Value& v) { return !v.erased; })));
  std::vector<ValueId> map(values.size(), kNoValue);
  auto mapped = [&map](ValueId v) { return v == kNoValue ? kNoValue : map[index(v)]; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].erased || values[i].kind == ValueKind::kNode) continue;
    Value value = values[i];
    value.uses.clear();
    map[i] = copy.add_value(std::move(value));
    copy.value(map[i]).serial = values[i].serial;
  }
  for (NodeId id : nodes) {
    Node n = node(id);
    for (ValueId& input : n.inputs) input = mapped(input);
    std::vector<Value> outputs_of_node;
    for (ValueId output : n.outputs) {
      outputs_of_node.push_back(output == kNoValue ? Value{} : value(output));
      outputs_of_node.back().uses.clear();
    }
    std::vector<ValueId> old_outputs = n.outputs;
    NodeId new_id = copy.add_node(std::move(n), outputs_of_node, kNoNode);
    copy.node(new_id).serial = node(id).serial;
    for (std::size_t i = 0; i < old_outputs.size(); ++i) {
      if (old_outputs[i] == kNoValue) continue;
      const ValueId copied = map[index(old_outputs[i])] = copy.node(new_id).outputs[i];
      copy.value(copied).serial = value(old_outputs[i]).serial;
    }
  }
  for (ValueId v : inputs) copy.inputs.push_back(mapped(v));
  for (ValueId v : outputs) copy.outputs.push_back(mapped(v));
  for (const Update& u : updates) copy.updates.push_back({mapped(u.state), mapped(u.value)});
  for (const GradientOf& g : gradients) {
    copy.gradients.push_back({mapped(g.of), mapped(g.gradient)});
  }
  copy.loss = mapped(loss);
  copy.notes = notes;
  copy.last_serial_ = last_serial_;
  return copy;
}

}  // namespace trainscope
