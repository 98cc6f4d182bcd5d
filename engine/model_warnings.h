// Tells people what the reader of a model was not sure of.
#pragma once

#include "engine/core/log.h"
#include "engine/onnx/import.h"

namespace trainscope {

void warn_of(const OnnxModel& model, Logger& log);

}  // namespace trainscope
