// By the marks of the present exporter, by names and nodes of the older one.
#include "engine/onnx/torch_names.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/initializers/folded.h"
#include "engine/onnx/initializers/parameter_place.h"
#include "engine/onnx/initializers/script_names.h"
#include "engine/onnx/parameters.h"

namespace trainscope {
namespace {

constexpr std::string_view kCounter = "num_batches_tracked";

std::string_view leaf_of(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// A tensor that the module's state_dict has.
void add_target(const OnnxModel::Impl& model, const std::string& name, TorchNames& names) {
  if (model.lost.contains(name)) {
    names.lost.push_back({.name = name,
                          .reason = "fused into another layer, or computed into a constant, by the "
                                    "exporter",
                          .reader = {}});
    return;
  }
  if (model.partial.contains(name)) {
    names.lost.push_back({.name = name,
                          .reason = "only the rows that the forward pass reads are in the model",
                          .reader = {}});
    return;
  }
  const ParameterPlace place = place_of(model, name);
  if (!place.initializer.empty()) {
    names.tensors.push_back({.name = name,
                             .initializer = place.initializer,
                             .shape_told = !model.reshaped.contains(place.initializer)});
    if (model.added.contains(place.initializer)) names.added.push_back(name);
  } else {
    (leaf_of(name) == kCounter ? names.counters : names.unread).push_back(name);
  }
}

void add_marked(const OnnxModel::Impl& model, TorchNames& names) {
  for (const ProgramInput& input : model.marks.program) {
    const bool kept = input.kind == "PARAMETER" || (input.kind == "BUFFER" && input.persistent);
    if (kept) add_target(model, input.target, names);
  }
  if (!model.marks.program.empty()) return;
  for (const ModelInitializer& each : model.facts.initializers) {
    const auto kind = model.marks.kinds.find(each.name);
    if (kind == model.marks.kinds.end()) continue;
    const bool kept = kind->second == "PARAMETER" || kind->second == "BUFFER";
    if (kept) add_target(model, each.name, names);
  }
}

void add_script(const OnnxModel::Impl& model, TorchNames& names) {
  names.tensors = script_tensors(model);
  for (const TorchTensor& tensor : names.tensors) {
    constexpr std::string_view kMean = "running_mean";
    if (leaf_of(tensor.name) != kMean) continue;
    const std::size_t module = tensor.name.size() - kMean.size();
    names.counters.push_back(tensor.name.substr(0, module) + std::string(kCounter));
  }
}

std::unordered_map<std::string_view, std::string_view> first_readers(const OnnxModel::Impl& model) {
  std::unordered_map<std::string_view, std::string_view> readers;
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    for (const std::string& input : node.input()) readers.emplace(input, node.name());
  }
  return readers;
}

// What is trained, and is no tensor of the module.
void add_nameless(const OnnxModel& model, const ImportOptions& options, TorchNames& names) {
  std::set<std::string> known;
  for (const TorchTensor& tensor : names.tensors) known.insert(tensor.initializer);
  for (const LostTensor& lost : names.lost) known.insert(lost.name);
  const auto readers = first_readers(model.impl());
  for (const InitializerChoice& choice : choose_parameters(model, options).initializers) {
    const bool changes =
        choice.role == InitializerRole::kTrained || choice.role == InitializerRole::kState;
    if (!changes || known.contains(choice.name)) continue;
    const auto reader = readers.find(choice.name);
    names.lost.push_back({.name = choice.name,
                          .reason = "made by the exporter of tensors that the file does not name",
                          .reader = std::string(reader->second)});
  }
}

}  // namespace

TorchNames torch_names(const OnnxModel& model, const ImportOptions& options) {
  const OnnxModel::Impl& impl = model.impl();
  const bool marked = impl.marks.tell_parameters();
  if (model.is_stage() || (!marked && impl.proto.producer_name() != "pytorch")) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the model has no names of PyTorch: {}",
                            model.is_stage() ? "it is a stage of a run"
                                             : fmt::format("it was written by '{}'",
                                                           printable(model.producer()))))
        .at(model.path().empty() ? "the model" : printable(model.path().string()))
        .hint("without --names torch its tensors keep the names that they have in the model");
  }
  TorchNames names;
  if (marked) {
    add_marked(impl, names);
  } else {
    add_script(impl, names);
  }
  add_nameless(model, options, names);
  return names;
}

SharedTensor in_torch_layout(const OnnxModel& model, const TorchTensor& tensor,
                             SharedTensor elements) {
  const DType dtype = model.initializer(tensor.initializer)->dtype();
  if (elements->dtype() != dtype) {
    elements = std::make_shared<const Tensor>(convert(*elements, dtype));
  }
  switch (tensor.layout) {
    case TorchLayout::kSame:
      return elements;
    case TorchLayout::kTransposed:
      return std::make_shared<const Tensor>(transposed(*elements));
    case TorchLayout::kVector:
      return std::make_shared<const Tensor>(
          Tensor(*elements).reshaped(Shape{elements->shape().elements()}));
  }
  return elements;
}

}  // namespace trainscope
