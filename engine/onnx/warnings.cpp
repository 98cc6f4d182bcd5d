// What a model's reader was not sure of.
#include "engine/onnx/warnings.h"

#include <fmt/format.h>

#include "engine/onnx/validate.h"

namespace trainscope {

// A newer format adds fields as a rule: what is read means the same, what is not known is left out.
std::vector<std::string> warnings_of(const OnnxModel& model) {
  if (model.ir_version() <= kNewestIrVersion) return {};
  return {
      fmt::format("IR version {} is newer than {}, the newest known one: what it added is not read",
                  model.ir_version(), kNewestIrVersion)};
}

}  // namespace trainscope
