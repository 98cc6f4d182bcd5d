// An ONNX model as plain structs: what builders write, without shapes inside and without protobuf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/attributes.h"
#include "engine/onnx/export.h"  // IWYU pragma: export

namespace trainscope {

struct PlainNode {
  std::string op;
  std::string name;
  std::vector<std::string> inputs;  // "": left out
  std::vector<std::string> outputs;
  Attributes attributes;
};

struct PlainInitializer {
  std::string name;
  TensorType type;
  // Makes the elements, the same at each call and only then: a model of any size is written in the
  // memory of its largest tensor.
  std::function<Tensor()> elements;
  bool trained = true;  // false: a running statistic
};

// Inputs and outputs may have symbolic dimensions; nodes come in an order in which each name is
// made before it is read.
struct PlainModel {
  std::string name;
  std::vector<ModelTensor> inputs;
  std::vector<ModelTensor> outputs;
  std::vector<PlainInitializer> initializers;
  std::vector<PlainNode> nodes;
  // Shapes of values in between, for tools, where ONNX's own shape inference does not find them.
  std::vector<ModelTensor> values;

  std::int64_t parameters() const;  // elements of the initializers that are trained
};

// Writes IR 8, opset 17, ONNX's own ops only. Files are replaced in one step. External data is
// written as it is made, one initializer after the other.
void write_onnx(const PlainModel& model, const std::filesystem::path& path,
                Weights weights = Weights::kAuto);
// The same as the bytes of one file: OnnxModel::from_bytes reads them.
std::string onnx_bytes(const PlainModel& model);
// The model without making the elements of its initializers: for plans of any size.
OnnxModel shapes_of(const PlainModel& model);

}  // namespace trainscope
