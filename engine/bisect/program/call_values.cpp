// Values by copies from the device, as soon as they are made.
#include "engine/bisect/program/call_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/bisect/typed_inputs.h"
#include "engine/core/error.h"
#include "engine/exec/reference.h"

namespace trainscope {

CallValues::CallValues(Executor& executor, const std::map<std::string, Tensor>& inputs,
                       const Evaluate& evaluate)
    : executor_(executor),
      program_(executor.program()),
      evaluate_(evaluate),
      values_(program_.graph.value_capacity()),
      unknown_(program_.graph.value_capacity(), false),
      position_(program_.graph.node_capacity()) {
  executor_.load_initial();
  give(typed_for(program_.graph, inputs));
  find_silent_nodes();
}

void CallValues::give(const std::map<std::string, Tensor>& inputs) {
  for (const auto& [name, tensor] : inputs) {
    if (executor_.has(name)) executor_.write(name, tensor);
  }
  values_ = given_values(program_.graph, inputs);
  // What a model leaves to the engine (zeros of moments, a loss scale) is as it was loaded.
  for (const ValueId id : program_.graph.live_values()) {
    const Value& value = program_.graph.value(id);
    const bool kept = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
    if (!kept || inputs.contains(value.name) || !executor_.has(value.name)) continue;
    values_[index(id)] = std::make_shared<const Tensor>(executor_.read(value.name));
  }
}

void CallValues::find_silent_nodes() {
  std::vector<bool> has_calls(program_.graph.node_capacity(), false);
  for (const Call& call : program_.calls) {
    if (call.node != kNoNode) has_calls[static_cast<std::size_t>(call.node)] = true;
  }
  std::size_t position = 0;
  for (const NodeId id : program_.graph.order()) {
    position_[static_cast<std::size_t>(id)] = position++;
    if (!has_calls[static_cast<std::size_t>(id)]) silent_.push_back(id);
  }
}

void CallValues::make_before(CallId id) {
  const NodeId node = program_.call(id).node;
  if (node == kNoNode) return;
  const std::size_t end = position_[static_cast<std::size_t>(node)];
  const auto is_due = [&](NodeId silent) {
    return position_[static_cast<std::size_t>(silent)] < end;
  };
  while (next_silent_ < silent_.size() && is_due(silent_[next_silent_])) {
    due_.push_back(silent_[next_silent_++]);
  }
  std::erase_if(due_, [this](NodeId due) { return make(due); });
}

// Not yet of a node that reads what no call has made: partials are added up behind their section.
bool CallValues::make(NodeId id) {
  const Node& node = program_.graph.node(id);
  bool known = true;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue || find(input) != nullptr) continue;
    if (!is_unknown(input)) return false;
    known = false;
  }
  try {
    if (known) compute_node(program_.graph, node, evaluate_, values_);
  } catch (const Error&) {
    known = false;
  }
  for (const ValueId output : node.outputs) {
    if (output != kNoValue && !known) unknown_[index(output)] = true;
  }
  return true;
}

void CallValues::note_outputs(CallId id) {
  const Call& call = program_.call(id);
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    const Operand& output = call.outputs[k];
    const bool is_there = output.value != kNoValue && output.buffer != kNoBuffer;
    if (is_there && output.slice != TileSlice::kPartial) note_output(id, k);
  }
}

// Slices of one value come in their order.
void CallValues::note_output(CallId id, std::size_t k) {
  const Operand& output = program_.call(id).outputs[k];
  const TensorType& type = program_.graph.value(output.value).type;
  const auto key = static_cast<std::int32_t>(output.value);
  Pieces& pieces = pieces_[key];
  if (pieces.done == 0) pieces.tensor = Tensor(type);
  const std::size_t bytes =
      std::min<std::size_t>(output.type.bytes(), pieces.tensor.bytes() - pieces.done);
  executor_.read_output(id, k, 0, {pieces.tensor.data() + pieces.done, bytes});
  pieces.done += bytes;
  if (pieces.done < pieces.tensor.bytes()) return;
  values_[index(output.value)] = std::make_shared<const Tensor>(std::move(pieces.tensor));
  pieces_.erase(key);
}

void CallValues::begin_update() {
  for (const Update& update : program_.graph.updates) {
    const SharedTensor& next = values_[index(update.value)];
    if (next != nullptr) values_[index(update.state)] = next;
  }
}

}  // namespace trainscope
