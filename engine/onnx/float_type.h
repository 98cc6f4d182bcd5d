// The model in another float type: what f32 in its attributes becomes in an f64 graph.
#pragma once

#include "engine/onnx/importer/import_scope.h"

namespace trainscope {

// Tensors and type numbers in the attributes of a node, f32 to f64.
void upcast_floats(SourceNode& node);

}  // namespace trainscope
