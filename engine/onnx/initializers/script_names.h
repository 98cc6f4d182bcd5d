// Names in PyTorch of the initializers of a file that the older exporter wrote. It keeps the name
// of a tensor that nodes read as it is, and makes a new one ("onnx::MatMul_12") where it folded a
// Transpose or Unsqueeze into it.
#pragma once

#include <vector>

#include "engine/onnx/model_impl.h"
#include "engine/onnx/torch_names.h"

namespace trainscope {

// In the model's order: what has its own name, then what was folded and nodes tell the name of,
// then further names of what PyTorch ties.
std::vector<TorchTensor> script_tensors(const OnnxModel::Impl& model);

}  // namespace trainscope
