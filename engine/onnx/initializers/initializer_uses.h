// Where the nodes of a model read its initializers, as far as training asks.
#pragma once

#include <string>
#include <vector>

#include "engine/onnx/model_impl.h"

namespace trainscope {

struct InitializerUses {
  int count = 0;
  bool known = false;     // its elements are needed before the run: sizes, limits
  bool state = false;     // a running statistic
  bool exponent = false;  // of a power
  bool scale = false;     // of quantized numbers
  bool table = false;     // of a position's cosines or sines
  bool fill = false;      // what a Where puts in the place of masked elements
};

// By initializer, in the model's order.
std::vector<InitializerUses> initializer_uses(const OnnxModel::Impl& model);

// Whether a float initializer is a mask that scores are added to: zeros and numbers so low that
// nothing is left of what they are added to. Also one that has ones up to the diagonal.
bool is_mask(const OnnxModel::Impl& model, int index);

// Whether exporters make such names for the numbers of a graph: "val_3", "onnx::Mul_12",
// "/Constant_output_0".
bool is_name_of_constant(const std::string& name);

// The module that the older exporter made the node for: "/encoder/layers.0/Gemm" is of
// "encoder.layers.0".
std::string script_module(const std::string& node);

}  // namespace trainscope
