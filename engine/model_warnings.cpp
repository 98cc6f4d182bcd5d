// Tells people what the reader of a model was not sure of.
#include "engine/model_warnings.h"

#include "engine/onnx/warnings.h"

namespace trainscope {

void warn_of(const OnnxModel& model, Logger& log) {
  for (const std::string& warning : warnings_of(model)) log.warning("the model: {}", warning);
}

}  // namespace trainscope
