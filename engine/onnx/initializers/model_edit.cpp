// Initializers added to a parsed model, nodes put between others.
#include "engine/onnx/initializers/model_edit.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/core/text.h"
#include "engine/onnx/validate.h"

namespace trainscope {

ModelEdit::ModelEdit(OnnxModel::Impl& model) : model_(model) {
  const pb::GraphProto& graph = model.proto.graph();
  for (int i = 0; i < graph.initializer_size(); ++i) {
    index_.emplace(graph.initializer(i).name(), i);
    names_.insert(graph.initializer(i).name());
  }
  for (const pb::NodeProto& node : graph.node()) {
    names_.insert(node.name());
    read_.insert(node.input().begin(), node.input().end());
    for (std::string_view name : captured_names(node)) read_.emplace(name);
    names_.insert(node.output().begin(), node.output().end());
  }
  for (const pb::ValueInfoProto& input : graph.input()) names_.insert(input.name());
}

int ModelEdit::find(std::string_view name) const {
  auto found = index_.find(std::string(name));
  return found == index_.end() ? -1 : found->second;
}

const TensorType& ModelEdit::type(int index) const {
  return model_.facts.initializers[static_cast<std::size_t>(index)].type;
}

bool ModelEdit::is_float_initializer(std::string_view name) const {
  const int index = find(name);
  return index >= 0 && is_float(type(index).dtype);
}

bool ModelEdit::equal(int index, const Tensor& other) const {
  const SharedTensor own = elements(index);
  return own->type() == other.type() && std::memcmp(own->data(), other.data(), own->bytes()) == 0;
}

bool ModelEdit::is_input(const std::string& name) const {
  return std::ranges::any_of(
      model_.proto.graph().input(),
      [&name](const pb::ValueInfoProto& input) { return input.name() == name; });
}

bool ModelEdit::is_free(const std::string& name) const {
  const bool fits = !name.empty() && name.size() <= kMaxNameBytes && is_valid_utf8(name);
  return fits && !names_.contains(name) &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string ModelEdit::free_name(std::string wanted) const {
  while (names_.contains(wanted)) wanted += "_";
  return wanted;
}

void ModelEdit::add(const std::string& name, SharedTensor elements,
                    const RestoredInitializer& restored) {
  pb::GraphProto& graph = *model_.proto.mutable_graph();
  index_.emplace(name, graph.initializer_size());
  names_.insert(name);
  *graph.add_initializer() = tensor_header(name, elements->type());
  model_.facts.initializers.push_back({.name = name, .type = elements->type()});
  model_.tensors.push_back(std::move(elements));
  model_.restored.push_back(restored);
}

void ModelEdit::copy(int from, const std::string& name, const std::string& how) {
  const std::string source = model_.proto.graph().initializer(from).name();
  const RestoredInitializer restored{.name = name, .from = source, .how = how};
  if (!model_.is_unread(from)) {
    add(name, elements(from), restored);
    return;
  }
  pb::GraphProto& graph = *model_.proto.mutable_graph();
  index_.emplace(name, graph.initializer_size());
  names_.insert(name);
  pb::TensorProto header = graph.initializer(from);
  header.set_name(name);
  *graph.add_initializer() = std::move(header);
  model_.facts.initializers.push_back({.name = name, .type = type(from)});
  model_.tensors.emplace_back();
  model_.restored.push_back(restored);
}

void ModelEdit::set_input(int node, int slot, const std::string& name) {
  pb::NodeProto& changed = *model_.proto.mutable_graph()->mutable_node(node);
  while (changed.input_size() <= slot) changed.add_input("");
  changed.set_input(slot, name);
}

// Initializers that nodes of the file read, and none reads any longer.
void ModelEdit::drop_unread() {
  pb::GraphProto& graph = *model_.proto.mutable_graph();
  std::unordered_set<std::string_view> needed;
  for (const pb::NodeProto& node : graph.node()) {
    needed.insert(node.input().begin(), node.input().end());
    for (std::string_view name : captured_names(node)) needed.insert(name);
  }
  for (const pb::ValueInfoProto& input : graph.input()) needed.insert(input.name());
  for (const pb::ValueInfoProto& output : graph.output()) needed.insert(output.name());
  google::protobuf::RepeatedPtrField<pb::TensorProto> kept;
  std::vector<ModelInitializer> facts;
  std::vector<SharedTensor> tensors;
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::string& name = graph.initializer(i).name();
    if (read_.contains(name) && !needed.contains(name)) continue;
    facts.push_back(std::move(model_.facts.initializers[index]));
    tensors.push_back(std::move(model_.tensors[index]));
    kept.Add(std::move(*graph.mutable_initializer(i)));
  }
  graph.mutable_initializer()->Swap(&kept);
  model_.facts.initializers = std::move(facts);
  model_.tensors = std::move(tensors);
}

void ModelEdit::finish() {
  pb::GraphProto& graph = *model_.proto.mutable_graph();
  if (!added_.empty() || !removed_.empty()) {
    google::protobuf::RepeatedPtrField<pb::NodeProto> nodes;
    for (int i = 0; i < graph.node_size(); ++i) {
      auto before = added_.find(i);
      if (before != added_.end()) {
        for (pb::NodeProto& each : before->second) nodes.Add(std::move(each));
      }
      if (!removed_.contains(i)) nodes.Add(std::move(*graph.mutable_node(i)));
    }
    graph.mutable_node()->Swap(&nodes);
  }
  drop_unread();
  model_.initializer_index.clear();
  for (std::size_t i = 0; i < model_.facts.initializers.size(); ++i) {
    model_.initializer_index.emplace(model_.facts.initializers[i].name, static_cast<int>(i));
  }
}

}  // namespace trainscope
