// What conversions of single nodes (adapters, function bodies) see of the graph being built.
#include "engine/onnx/importer/import_scope.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// What a node writes and reads, as do the graphs inside of it: a body may read what is around it.
template <class Names>
void reserve_names(const pb::NodeProto& node, Names& names) {
  names.insert(node.output().begin(), node.output().end());
  names.insert(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    for (const pb::NodeProto& inner : attribute.g().node()) reserve_names(inner, names);
  }
}

}  // namespace

const std::string& ImportScope::resolved(const std::string& name) const {
  for (auto branch = branches_.rbegin(); branch != branches_.rend(); ++branch) {
    const auto found = branch->find(name);
    if (found != branch->end()) return found->second;
  }
  return name;
}

ValueId ImportScope::find(std::string_view name) const {
  const ValueId id = graph_.find(name);
  return id == kNoValue && outer_ ? outer_(name) : id;
}

void ImportScope::check_not_refused(const std::string& name) const {
  const auto found = refused_.find(name);
  if (found != refused_.end()) fail_unsupported("{}", found->second);
}

ValueId ImportScope::value(const SourceNode& node, std::size_t input) const {
  CHECK_INVARIANT(input < node.inputs.size());
  ValueId id = find(node.inputs[input]);
  if (id != kNoValue) return id;
  check_not_refused(node.inputs[input]);
  fail_unsupported("node '{}' ({}): reads '{}', an output that has no counterpart in opset {}",
                   printable(node.source), printable(node.op), printable(node.inputs[input]),
                   graph_.opset);
}

const TensorType& ImportScope::type(const SourceNode& node, std::size_t input) const {
  require(input < node.inputs.size() && !node.inputs[input].empty(), ErrorCode::kBadInput,
          "node '{}' ({}): input {} is missing", printable(node.source), printable(node.op), input);
  return graph_.value(value(node, input)).type;
}

const Tensor* ImportScope::known(const SourceNode& node, std::size_t input) const {
  if (input >= node.inputs.size() || node.inputs[input].empty()) return nullptr;
  const Value& v = graph_.value(value(node, input));
  bool changes = v.kind == ValueKind::kParameter || v.kind == ValueKind::kState;
  return changes ? nullptr : v.data.get();
}

Ints ImportScope::known_ints(const SourceNode& node, std::size_t input) const {
  const Tensor* tensor = known(node, input);
  require_supported(
      tensor != nullptr,
      "node '{}' ({}): input {} must be known before the run to convert it from opset {}",
      printable(node.source), printable(node.op), input, node.opset);
  return as_ints(*tensor);
}

std::string ImportScope::fresh(std::string_view wanted) {
  if (reserved_.empty()) {
    for (const pb::NodeProto& node : model_.node()) {
      reserve_names(node, reserved_);
    }
    for (const auto& input : model_.input()) reserved_.insert(input.name());
    for (const auto& initializer : model_.initializer()) reserved_.insert(initializer.name());
  }
  std::string name = graph_.unique_name(wanted);
  for (int i = 1; reserved_.contains(name); ++i) {
    name = graph_.unique_name(fmt::format("{}.{}", wanted, i));
  }
  return name;
}

std::string ImportScope::constant(Tensor tensor, std::string_view wanted) {
  ValueId id = builder_.constant(std::move(tensor), fresh(wanted));
  return graph_.value(id).name;
}

}  // namespace trainscope
