// The state_dict of the PyTorch module that a model was exported from, as far as its file tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/onnx/import.h"

namespace trainscope {

// How the elements of an initializer become those of the module's tensor.
enum class TorchLayout : std::uint8_t {
  kSame,
  kTransposed,  // a matrix [K, N], in the module [N, K]
  kVector,      // [C, 1, 1], in the module [C]
};

struct TorchTensor {
  std::string name;         // in the state_dict: "encoder.0.weight"
  std::string initializer;  // that has its elements; one has several names where PyTorch ties them
  TorchLayout layout = TorchLayout::kSame;
  bool shape_told = true;  // else the module may have the elements in another shape
};

struct LostTensor {
  std::string name;  // in the state_dict; the initializer's where the file does not tell that
  std::string reason;
  std::string reader;  // the node that has the initializer as input; "" where `name` is PyTorch's
};

struct TorchNames {
  std::vector<TorchTensor> tensors;
  // Of these, what is added to a number that the file does not tell, and is taken for 1.
  std::vector<std::string> added;
  std::vector<LostTensor> lost;       // the module should have them, and cannot get them back
  std::vector<std::string> unread;    // the forward pass does not need them: not in the file
  std::vector<std::string> counters;  // num_batches_tracked of batch norms: not in the file
};

// From models of both of PyTorch's exporters, and from trained models written of these. `options`
// say what is trained. kBadInput for a model that PyTorch did not export.
TorchNames torch_names(const OnnxModel& model, const ImportOptions& options);

// The tensor of the module, of the initializer's elements, which may have been trained in another
// type than the model's.
SharedTensor in_torch_layout(const OnnxModel& model, const TorchTensor& tensor,
                             SharedTensor elements);

}  // namespace trainscope
