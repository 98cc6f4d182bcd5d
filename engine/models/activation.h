// Activation functions of the builders, in the spelling of PyTorch's exporter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/models/plain_builder.h"

namespace trainscope {

// gelu is the exact one, by erf; gelu_tanh its approximation (Hendrycks, Gimpel 2016).
std::vector<std::string_view> activation_names();

// One of the names above, applied to the value x.
ValueName activation(PlainBuilder& b, std::string_view name, const ValueName& x);

}  // namespace trainscope
