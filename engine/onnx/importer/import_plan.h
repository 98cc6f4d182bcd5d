// What the importer decides before it builds: shapes of inputs, kinds of initializers.
#pragma once

#include <vector>

#include "engine/onnx/import.h"
#include "engine/onnx/model_impl.h"

namespace trainscope {

// The shape of each input (in the model's order) with all symbols bound. kUsage, listing every
// dimension that stays open, and for sizes that contradict the model or name nothing in it.
std::vector<Shape> bind_shapes(const std::vector<ModelTensor>& inputs,
                               const ImportOptions& options);

// The kind of each initializer (in the model's order) by its uses and the name patterns. kUsage
// for a pattern that matches no initializer.
std::vector<ValueKind> initializer_kinds(const OnnxModel::Impl& model,
                                         const ImportOptions& options);

}  // namespace trainscope
