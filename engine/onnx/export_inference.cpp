// export_inference: the source model with trained weights, without what only training needs.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/export.h"
#include "engine/onnx/inference_form.h"
#include "engine/onnx/model_impl.h"
#include "engine/onnx/model_writer.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

using NameSet = std::unordered_set<std::string>;

// Names that nodes read or that are results.
NameSet used_names(const pb::GraphProto& graph) {
  NameSet names;
  for (const pb::NodeProto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for (std::string_view name : captured_names(node)) names.emplace(name);
  }
  for (const pb::ValueInfoProto& output : graph.output()) names.insert(output.name());
  return names;
}

// Keeps the elements for which `keep` holds, in order.
template <typename T, typename Keep>
void filter(google::protobuf::RepeatedPtrField<T>& list, Keep keep) {
  google::protobuf::RepeatedPtrField<T> kept;
  for (T& each : list) {
    if (keep(each)) kept.Add(std::move(each));
  }
  list.Swap(&kept);
}

void drop_outputs(pb::GraphProto& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    int before = graph.output_size();
    filter(*graph.mutable_output(),
           [&name](const pb::ValueInfoProto& output) { return output.name() != name; });
    require(graph.output_size() < before, ErrorCode::kUsage, "the model has no output '{}'",
            printable(name));
  }
  require(graph.output_size() > 0, ErrorCode::kUsage, "no output would be left in the model");
}

void drop_dead_nodes(pb::GraphProto& graph) {
  NameSet needed;
  for (const pb::ValueInfoProto& output : graph.output()) needed.insert(output.name());
  std::vector<bool> live(static_cast<std::size_t>(graph.node_size()), false);
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const pb::NodeProto& node = graph.node(i);
    bool is_live = std::ranges::any_of(
        node.output(), [&needed](const std::string& name) { return needed.contains(name); });
    if (!is_live) continue;
    live[static_cast<std::size_t>(i)] = true;
    for (const std::string& input : node.input()) {
      if (!input.empty()) needed.insert(input);
    }
    for (std::string_view name : captured_names(node)) needed.emplace(name);
  }
  std::size_t i = 0;
  filter(*graph.mutable_node(), [&](const pb::NodeProto&) { return live[i++]; });
}

// Inputs and initializers that were read before and are no longer; types of values that are gone.
void drop_unused(pb::GraphProto& graph, const NameSet& used_before) {
  NameSet used = used_names(graph);
  auto stays = [&](const auto& each) {
    return used.contains(each.name()) || !used_before.contains(each.name());
  };
  filter(*graph.mutable_input(), stays);
  filter(*graph.mutable_initializer(), stays);
  // Types of initializers stay: exporters write there which of them were parameters.
  NameSet produced;
  for (const pb::NodeProto& node : graph.node()) {
    produced.insert(node.output().begin(), node.output().end());
  }
  for (const pb::TensorProto& tensor : graph.initializer()) produced.insert(tensor.name());
  filter(*graph.mutable_value_info(),
         [&](const pb::ValueInfoProto& info) { return produced.contains(info.name()); });
}

// Constants in other files become inline: their files stay with the source.
void inline_constants(pb::GraphProto& graph, const OnnxModel::Impl& source) {
  for (pb::NodeProto& node : *graph.mutable_node()) {
    for (pb::AttributeProto& a : *node.mutable_attribute()) {
      if (!a.has_t() || a.t().data_location() != pb::TensorProto::EXTERNAL) continue;
      *a.mutable_t() = tensor_proto(a.t().name(), read_tensor(a.t(), a.name(), source.files));
    }
  }
}

void to_inference(pb::ModelProto& model, const OnnxModel& source, const InferenceOptions& options) {
  pb::GraphProto& graph = *model.mutable_graph();
  NameSet used_before = used_names(graph);
  drop_outputs(graph, options.drop_outputs);
  std::vector<std::string> results;
  for (const pb::ValueInfoProto& output : graph.output()) results.push_back(output.name());
  use_inference_form(*graph.mutable_node(), results, source.opset());
  for (pb::FunctionProto& function : *model.mutable_functions()) {
    use_inference_form(*function.mutable_node(),
                       {function.output().begin(), function.output().end()}, source.opset());
  }
  drop_dead_nodes(graph);
  drop_unused(graph, used_before);
  inline_constants(graph, source.impl());
}

// The trained elements in the type that the model stores them in.
SharedTensor trained_tensor(const OnnxModel& source, const std::string& name,
                            const InferenceOptions& options) {
  SharedTensor original = source.initializer(name);
  SharedTensor trained = options.tensor ? options.tensor(name) : nullptr;
  if (!trained) return original;
  CHECK_INVARIANT(trained->shape() == original->shape());
  if (trained->dtype() == original->dtype()) return trained;
  return std::make_shared<const Tensor>(convert(*trained, original->dtype()));
}

}  // namespace

void export_inference(const OnnxModel& source, const std::filesystem::path& path,
                      const InferenceOptions& options) {
  export_inference(source, entry_of(path), options);
}

void export_inference(const OnnxModel& source, const FolderEntry& entry,
                      const InferenceOptions& options) {
  CHECK_INVARIANT(options.weights != Weights::kOmit);
  require(!source.is_stage(), ErrorCode::kUsage,
          "'{}' is a stage of a run; inference models are made from the model that was trained",
          printable(source.path().string()));
  pb::ModelProto model = source.impl().proto;
  to_inference(model, source, options);
  std::uint64_t total_bytes = 0;
  for (const ModelInitializer& each : source.initializers()) total_bytes += each.type.bytes();
  ModelWriter writer(entry, options.weights, total_bytes);
  for (pb::TensorProto& proto : *model.mutable_graph()->mutable_initializer()) {
    SharedTensor tensor = trained_tensor(source, proto.name(), options);
    clear_elements(proto);
    writer.put(proto, *tensor);
  }
  writer.finish(model);
}

}  // namespace trainscope
