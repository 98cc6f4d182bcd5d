// Whether the shapes of a model's inputs are known.
#pragma once

#include "engine/onnx/import.h"

namespace trainscope {

// Throws kUsage, naming them, where sizes of the model's inputs are not known, and where those of
// the options do not fit it.
void require_input_shapes(const OnnxModel& model, const ImportOptions& options);

}  // namespace trainscope
