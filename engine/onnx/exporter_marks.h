// What PyTorch's exporter writes beside a model's nodes and values: which initializer was a
// parameter, what the program had before the exporter rewrote it, whose call a node was.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/onnx/proto.h"

namespace trainscope {

// An input of the exported program: a parameter or buffer of the module, or an input of the model.
struct ProgramInput {
  std::string name;        // that calls know it by: "p_encoder_0_weight"
  std::string kind;        // "PARAMETER", "BUFFER", "CONSTANT_TENSOR", "USER_INPUT"
  std::string target;      // a parameter's or buffer's name in PyTorch: "encoder.0.weight"
  bool persistent = true;  // of a buffer: whether the module's state_dict has it
};

// The call of a PyTorch function that a node is, or is part of.
struct NodeMarks {
  std::string module;    // path of the module that made it: "encoder.0", "": the model
  std::string function;  // "aten.layer_norm.default"
  std::string result;    // name of what it returned: "layer_norm_1"
  std::vector<std::string> arguments;  // names of inputs and results that it read, in order
  std::string rule;                    // that the exporter rewrote the node by
};

struct ExporterMarks {
  // By initializer, as written beside its type.
  std::unordered_map<std::string, std::string> kinds;
  // All of the program's, with those that the file no longer has.
  std::vector<ProgramInput> program;
  std::vector<NodeMarks> nodes;  // by index in the graph

  // Whether the file tells parameters from other initializers.
  bool tell_parameters() const { return !kinds.empty() || !program.empty(); }
};

// Empty lists for files of other exporters.
ExporterMarks exporter_marks(const pb::ModelProto& model);

// Gives the initializer `to` the marks of `from`, if it has any.
void copy_marks(pb::GraphProto& graph, const std::string& from, const std::string& to);

}  // namespace trainscope
