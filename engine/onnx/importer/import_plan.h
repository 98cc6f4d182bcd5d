// What the importer decides before it builds: shapes of inputs.
#pragma once

#include <vector>

#include "engine/onnx/import.h"
#include "engine/onnx/model_impl.h"

namespace trainscope {

// The shape of each input (in the model's order) with all symbols bound. kUsage, listing every
// dimension that stays open, and for sizes that contradict the model or name nothing in it.
std::vector<Shape> bind_shapes(const std::vector<ModelTensor>& inputs,
                               const ImportOptions& options);

}  // namespace trainscope
