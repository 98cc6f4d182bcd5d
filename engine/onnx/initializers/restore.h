// Exporters merge initializers of equal elements, fold those that only shapes are changed of, and
// leave out biases of zeros. Trained, they would differ: here each gets back what it is in PyTorch.
#pragma once

#include "engine/onnx/model_impl.h"

namespace trainscope {

// Splits, unfolds and adds initializers where the file shows what the exporter did, by names of
// PyTorch; the model computes the same as before. What cannot be restored becomes a fault of the
// model. For models that were just read: changes `proto`, `facts`, `tensors` and the index.
void restore_initializers(OnnxModel::Impl& model);

}  // namespace trainscope
