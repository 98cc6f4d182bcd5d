// Tensors as PyTorch's load_state_dict takes them.
#pragma once

#include <filesystem>
#include <span>

#include "engine/onnx/export.h"
#include "engine/onnx/torch_names.h"  // IWYU pragma: export

namespace trainscope {

// Writes a safetensors file of `tensors`: of each the elements that `trained` has for its
// initializer, else the model's.
void write_state_dict(const OnnxModel& model, std::span<const TorchTensor> tensors,
                      const TensorByName& trained, const std::filesystem::path& path);

}  // namespace trainscope
