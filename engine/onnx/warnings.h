// What a model's reader was not sure of.
#pragma once

#include <string>
#include <vector>

#include "engine/onnx/import.h"

namespace trainscope {

// What was read all the same, but may mean more than is known here: for whoever shows texts.
std::vector<std::string> warnings_of(const OnnxModel& model);

}  // namespace trainscope
