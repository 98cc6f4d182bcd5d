// Which initializer holds a parameter of the module.
#pragma once

#include <string>

#include "engine/onnx/model_impl.h"

namespace trainscope {

ParameterPlace place_of(const OnnxModel::Impl& model, const std::string& name);

}  // namespace trainscope
