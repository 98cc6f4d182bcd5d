// Which output of a model the loss reads where nobody says it.
#pragma once

#include "engine/onnx/import.h"
#include "engine/passes/training_options.h"

namespace trainscope {

// Where `output` of a term is empty: "logits" if the model has it, else its only output. Throws
// kUsage where it has several others.
void resolve_loss_output(const OnnxModel& model, LossOptions& loss);

}  // namespace trainscope
