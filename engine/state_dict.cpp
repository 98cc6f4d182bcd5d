// A safetensors file under names of PyTorch.
#include "engine/state_dict.h"

#include <utility>
#include <vector>

#include "engine/core/safetensors.h"

namespace trainscope {

void write_state_dict(const OnnxModel& model, std::span<const TorchTensor> tensors,
                      const TensorByName& trained, const std::filesystem::path& path) {
  std::vector<SharedTensor> elements;
  std::vector<NamedTensor> named;
  for (const TorchTensor& each : tensors) {
    SharedTensor own = trained ? trained(each.initializer) : nullptr;
    if (!own) own = model.initializer(each.initializer);
    elements.push_back(in_torch_layout(model, each, std::move(own)));
    named.push_back({.name = each.name, .tensor = elements.back()->view()});
  }
  write_safetensors(path, named, {{"format", "pt"}});  // transformers asks for it
}

}  // namespace trainscope
