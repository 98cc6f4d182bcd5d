// Initializers by names of PyTorch: their own, those that they are tied to, those of folded
// weights.
#include "engine/onnx/initializers/parameter_place.h"

#include <algorithm>

#include "engine/onnx/initializers/script_names.h"

namespace trainscope {
namespace {

// "" when the older exporter's file does not tell.
std::string find_script_tensor(const OnnxModel::Impl& model, const std::string& name) {
  if (model.marks.tell_parameters()) return {};
  for (const TorchTensor& tensor : script_tensors(model)) {
    if (tensor.name == name) return tensor.initializer;
  }
  return {};
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
  return {.initializer = find_script_tensor(model, name)};
}

ParameterPlace find_parameter(const OnnxModel& model, const std::string& name) {
  return place_of(model.impl(), name);
}

const std::vector<RestoredInitializer>& restored_initializers(const OnnxModel& model) {
  return model.impl().restored;
}

}  // namespace trainscope
