// Node creation with type inference and annotation of values known at compile time.
#include "engine/ir/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Values up to this many elements are computed while the graph is built (shape arithmetic, masks).
constexpr std::int64_t kMaxKnownElements = 65536;

std::string inputs_text(const Graph& graph, const std::vector<ValueId>& inputs) {
  std::string text;
  for (ValueId input : inputs) {
    if (!text.empty()) text += ", ";
    if (text.size() > 400) return text + "...";
    text += input == kNoValue
                ? "-"
                : printable(graph.value(input).name) + " " + type_text(graph.value(input).type);
  }
  return text;
}

void check_arity(const Builder::Spec& spec) {
  const OpDef& op = *spec.op;
  auto inputs = static_cast<int>(spec.inputs.size());
  require(inputs >= op.min_inputs && inputs <= op.max_inputs, ErrorCode::kBadInput,
          "{} inputs given, {} to {} expected", inputs, op.min_inputs,
          op.max_inputs == kVariadic ? std::string("any number") : std::to_string(op.max_inputs));
  auto outputs = static_cast<int>(spec.output_names.size());
  require(outputs >= 1 && outputs <= op.max_outputs, ErrorCode::kBadInput,
          "{} outputs asked for, 1 to {} exist", outputs, op.max_outputs);
  for (int i = 0; i < std::min(inputs, op.min_inputs); ++i) {
    require(spec.inputs[static_cast<std::size_t>(i)] != kNoValue, ErrorCode::kBadInput,
            "input {} is required but left out", i);
  }
}

}  // namespace

ValueId Builder::operator()(std::string_view op, std::vector<ValueId> inputs,
                            Attributes attributes) {
  return multi(op, std::move(inputs), 1, std::move(attributes)).front();
}

std::vector<ValueId> Builder::multi(std::string_view op, std::vector<ValueId> inputs,
                                    int output_count, Attributes attributes) {
  const std::vector<bool> all(static_cast<std::size_t>(output_count), true);
  return multi(op, std::move(inputs), all, std::move(attributes));
}

std::vector<ValueId> Builder::multi(std::string_view op, std::vector<ValueId> inputs,
                                    const std::vector<bool>& made, Attributes attributes) {
  return multi(ops_.get(op), std::move(inputs), made, std::move(attributes));
}

std::vector<ValueId> Builder::multi(const OpDef& op, std::vector<ValueId> inputs,
                                    const std::vector<bool>& made, Attributes attributes) {
  Spec spec;
  spec.op = &op;
  spec.name = graph_.unique_name(fmt::format("{}{}", prefix_, op.name));
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  spec.provenance = provenance_;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::string name = i == 0 ? spec.name : fmt::format("{}:{}", spec.name, i);
    spec.output_names.push_back(made[i] ? name : "");
  }
  NodeId id = add(std::move(spec));
  return graph_.node(id).outputs;
}

std::vector<TensorType> Builder::infer(const Spec& spec) const {
  Node probe;
  probe.inputs = spec.inputs;
  probe.attributes = spec.attributes;
  NodeArgs with_inputs(graph_, probe);
  OpArgs args = *with_inputs;
  args.output_count = static_cast<int>(spec.output_names.size());
  std::vector<TensorType> types = spec.op->shape(args);
  CHECK_INVARIANT(types.size() >= spec.output_names.size());
  return types;
}

NodeId Builder::add(Spec spec) {
  std::vector<Value> outputs;
  try {
    check_arity(spec);
    std::vector<TensorType> types = infer(spec);
    for (std::size_t i = 0; i < spec.output_names.size(); ++i) {
      Value value;
      value.name = spec.output_names[i];
      value.type = types[i];
      outputs.push_back(std::move(value));
    }
  } catch (Error& error) {
    error.at(fmt::format("{} '{}' with inputs ({})", spec.op->name, printable(spec.name),
                         inputs_text(graph_, spec.inputs)));
    throw;
  }
  for (Value& value : outputs) {
    if (!value.name.empty()) value.name = graph_.unique_name(value.name);
  }
  Node node;
  node.op = spec.op;
  node.name = std::move(spec.name);
  node.inputs = std::move(spec.inputs);
  node.attributes = std::move(spec.attributes);
  node.phase = phase_;
  node.provenance = std::move(spec.provenance);
  NodeId id = graph_.add_node(std::move(node), outputs, before_);
  note_made(graph_.node(id).serial);
  annotate_known(id);
  return id;
}

void Builder::note_made(Serial made) {
  if (made_of_ == kNoSerial && rule_ == 0) return;
  graph_.notes.list.push_back(
      {.kind = NoteKind::kMadeOf, .rule = rule_, .of = made, .other = made_of_});
}

ValueId Builder::add_value(Value value) {
  const ValueId id = graph_.add_value(std::move(value));
  note_made(graph_.value(id).serial);
  return id;
}

void Builder::annotate_known(NodeId id) {
  if (evaluate_ == nullptr || !*evaluate_) return;
  const Node& node = graph_.node(id);
  if (node.op->determinism == Determinism::kRandom) return;
  NodeArgs args(graph_, node);
  const KnownRule by_types = node.op->known;
  std::vector<const Tensor*> inputs;
  Tensor nothing;
  for (int i = 0; i < args->input_count(); ++i) {
    const Tensor* known = args->constants[static_cast<std::size_t>(i)];
    if (args->has(i) && known == nullptr && by_types == nullptr) return;
    inputs.push_back(args->has(i) ? known : nullptr);
  }
  for (ValueId output : node.outputs) {
    if (output == kNoValue || graph_.value(output).type.elements() > kMaxKnownElements) return;
  }
  std::vector<TensorType> types(args->outputs.begin(), args->outputs.end());
  std::vector<Tensor> results;
  if (by_types) {
    results.push_back(by_types(*args));
  } else {
    results = (*evaluate_)(*node.op, node.attributes, inputs, types);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    graph_.value(node.outputs[i]).data = std::make_shared<const Tensor>(std::move(results[i]));
  }
}

ValueId Builder::constant(Tensor tensor, std::string_view name) {
  Value value;
  value.name = graph_.unique_name(prefix_ + std::string(name));
  value.type = tensor.type();
  value.kind = ValueKind::kConstant;
  value.data = std::make_shared<const Tensor>(std::move(tensor));
  return add_value(std::move(value));
}

ValueId Builder::scalar(double number, DType dtype) {
  return constant(convert(Tensor::scalar(number), dtype), "scalar");
}

ValueId Builder::input(std::string_view name, TensorType type) {
  Value value;
  value.name = graph_.unique_name(name);
  value.type = type;
  value.kind = ValueKind::kInput;
  ValueId id = add_value(std::move(value));
  graph_.inputs.push_back(id);
  return id;
}

ValueId Builder::state(std::string_view name, TensorType type, SharedTensor initial) {
  Value value;
  value.name = graph_.unique_name(name);
  value.type = type;
  value.kind = ValueKind::kState;
  value.data = std::move(initial);
  return add_value(std::move(value));
}

ValueId Builder::sum_to(ValueId v, Shape target) {
  const Shape from = shape(v);
  if (from == target) return v;
  Ints axes;
  int lead = from.rank - target.rank;
  for (int a = 0; a < from.rank; ++a) {
    if (a < lead || (target[a - lead] == 1 && from[a] != 1)) axes.push_back(a);
  }
  if (!axes.empty()) v = (*this)("ReduceSum", {v, ints(axes)}, {{"keepdims", std::int64_t{1}}});
  return reshape(v, target);
}

ValueId Builder::reshape(ValueId v, Shape target) {
  if (shape(v) == target) return v;
  return (*this)("Reshape", {v, ints(Ints(target.span().begin(), target.span().end()))},
                 {{"allowzero", std::int64_t{1}}});
}

}  // namespace trainscope
