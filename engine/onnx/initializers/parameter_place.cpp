// Initializers by names of PyTorch: their own, those that they are tied to, those of folded
// weights.
#include "engine/onnx/initializers/parameter_place.h"

#include <algorithm>

#include "engine/onnx/initializers/initializer_uses.h"

namespace trainscope {
namespace {

// The older exporter folds the transpose of a weight, and names the result after the op that reads
// it. "" when there is none, or more than one.
std::string find_turned(const OnnxModel::Impl& model, const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || model.marks.tell_parameters()) return {};
  std::string found;
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    if (node.op_type() != "MatMul" || script_module(node.name()) != name.substr(0, dot)) continue;
    for (const std::string& input : node.input()) {
      if (!model.initializer_index.contains(input) || !is_name_of_constant(input)) continue;
      if (!found.empty()) return {};
      found = input;
    }
  }
  return found;
}

bool is_of_program(const OnnxModel::Impl& model, const std::string& name) {
  return std::ranges::any_of(model.marks.program,
                             [&name](const ProgramInput& input) { return input.target == name; });
}

}  // namespace

ParameterPlace place_of(const OnnxModel::Impl& model, const std::string& name) {
  if (model.initializer_index.contains(name)) return {.initializer = name};
  const auto tied = model.tied.find(name);
  if (tied != model.tied.end()) return {.initializer = tied->second};
  if (is_of_program(model, name) && !model.lost.contains(name))
    return {.initializer = {}, .unread = true};
  return {.initializer = find_turned(model, name)};
}

ParameterPlace find_parameter(const OnnxModel& model, const std::string& name) {
  return place_of(model.impl(), name);
}

const std::vector<RestoredInitializer>& restored_initializers(const OnnxModel& model) {
  return model.impl().restored;
}

}  // namespace trainscope
