// Bodies of nodes as graphs of their own: closed, what they read from around them is an input.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/importer/importer.h"

namespace trainscope {
namespace {

// Known values up to this size are in a body as they are: sizes, axes, numbers.
constexpr std::int64_t kMostCopied = 4096;

// Ops that are written anew for training, or draw numbers: a body would do so alike in every trip.
bool changes_in_training(const Node& node) {
  return node.op->determinism == Determinism::kRandom || !node.op->training_form.empty() ||
         !node.op->inference_form.empty();
}

TensorType stage_type(const pb::ValueInfoProto& info) {
  const std::string what = fmt::format("input '{}'", printable(info.name()));
  require(info.type().has_tensor_type(), ErrorCode::kBadInput, "{}: is no tensor", what);
  Ints dims;
  for (const auto& dim : info.type().tensor_type().shape().dim()) dims.push_back(dim.dim_value());
  return checked_type(dtype_of_onnx(info.type().tensor_type().elem_type(), what), dims, what);
}

}  // namespace

Importer::Importer(Importer& outer, const pb::GraphProto& body, const SourceNode& node)
    : source_(outer.source_),
      model_(outer.model_),
      proto_(body),
      outer_(&outer),
      prefix_(outer.prefix_ + node.name + "/"),
      ops_(outer.ops_),
      options_(outer.options_),
      builder_(graph_, ops_),
      scope_(graph_, builder_, proto_),
      is_stage_(outer.is_stage_) {
  builder_.set_evaluate(options_.evaluate);
  builder_.set_provenance(outer.provenance_);
  graph_.name = "body";
  if (!is_stage_) scope_.set_outer([this](std::string_view name) { return capture(name); });
}

ValueId Importer::capture(std::string_view name) {
  const ValueId around = outer_->scope_.find(outer_->scope_.resolved(std::string(name)));
  if (around == kNoValue) return kNoValue;
  const Value& value = outer_->graph_.value(around);
  const bool is_fixed = value.kind == ValueKind::kConstant || value.kind == ValueKind::kNode;
  if (is_fixed && value.data != nullptr && value.type.elements() <= kMostCopied) {
    Value constant;
    constant.name = name;
    constant.type = value.type;
    constant.kind = ValueKind::kConstant;
    constant.data = value.data;
    return graph_.add_value(std::move(constant));
  }
  const ValueId inside = add_body_input(std::string(name), value.type);
  captured_.emplace_back(inside, around);
  return inside;
}

ValueId Importer::add_body_input(const std::string& name, const TensorType& type) {
  Value value;
  value.name = name;
  value.type = type;
  value.kind = ValueKind::kInput;
  return graph_.add_value(std::move(value));
}

void Importer::add_body_constant(const std::string& name, Tensor tensor) {
  if (tensor.dtype() != dtype_of(tensor.dtype()))
    tensor = convert(tensor, dtype_of(tensor.dtype()));
  Value value;
  value.name = name;
  value.type = tensor.type();
  value.kind = ValueKind::kConstant;
  value.data = std::make_shared<const Tensor>(std::move(tensor));
  graph_.add_value(std::move(value));
}

void Importer::add_body_nodes() {
  for (const pb::TensorProto& tensor : proto_.initializer()) {
    if (graph_.find(tensor.name()) != kNoValue) continue;  // an input in this place
    add_body_constant(tensor.name(), read_tensor(tensor, tensor.name(), model_.external_files()));
  }
  add_nodes();
  for (const NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    require_supported(
        !changes_in_training(node),
        "node '{}' ({}) is in the body of another node, where dropout, random numbers "
        "and norms of the batch are not supported",
        printable(prefix_ + node.name), node.op->name);
  }
}

ValueId Importer::body_result(const std::string& name) {
  const ValueId id = scope_.find(name);
  if (id == kNoValue) scope_.check_not_refused(name);
  require_supported(id != kNoValue, "output '{}' of graph '{}' is no tensor that is known here",
                    printable(name), printable(prefix_));
  return id;
}

SharedGraph Importer::finished_body(std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  for (const auto& [inside, around] : captured_) inputs.push_back(inside);
  graph_.inputs = std::move(inputs);
  graph_.outputs = std::move(outputs);
  return std::make_shared<const Graph>(graph_.compacted());
}

// As write_onnx has it.
Graph Importer::stage_body() {
  std::vector<ValueId> inputs;
  for (const pb::ValueInfoProto& input : proto_.input()) {
    inputs.push_back(add_body_input(input.name(), stage_type(input)));
  }
  for (const pb::TensorProto& tensor : proto_.initializer()) {
    add_body_constant(tensor.name(), read_tensor(tensor, tensor.name(), model_.external_files()));
  }
  add_nodes();
  graph_.inputs = std::move(inputs);
  for (const pb::ValueInfoProto& output : proto_.output()) {
    graph_.outputs.push_back(find(output.name(), "output of a body"));
  }
  return graph_.compacted();
}

}  // namespace trainscope
