// What PyTorch's exporter writes beside a model's nodes and values: which initializer was a
// parameter, what the program had before the exporter rewrote it, whose call a node was.
#pragma once

#include <cstdint>
#include <optional>
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
  std::vector<std::string> arguments;       // names of inputs and results that it read, in order
  int users = 0;                            // calls of the program that read its result
  bool has_keywords = false;                // whether the call has arguments by name
  std::string rule;                         // that the exporter rewrote the node by
  std::optional<std::int64_t> padding_row;  // of an embedding: its padding_idx
  bool by_frequency = false;                // of an embedding: its scale_grad_by_freq
  bool source_detaches = false;             // whether the lines of source that led to it do
};

struct ExporterMarks {
  // By initializer, as written beside its type.
  std::unordered_map<std::string, std::string> kinds;
  // All of the program's, with those that the file no longer has.
  std::vector<ProgramInput> program;
  std::vector<NodeMarks> nodes;      // by index in the graph
  std::vector<std::string> outputs;  // results of calls that the program gives
  // Buffers of the module that its forward pass gives new elements, by their names in PyTorch.
  std::vector<std::string> mutated;
  // By constant that the exporter computed: the initializers that it is made of, and other
  // constants on the way.
  std::unordered_map<std::string, std::vector<std::string>> folded_from;

  // Whether the file tells parameters from other initializers.
  bool tell_parameters() const { return !kinds.empty() || !program.empty(); }
};

// Empty lists for files of other exporters.
ExporterMarks exporter_marks(const pb::ModelProto& model);

// Gives the initializer `to` the marks of `from`, if it has any.
void copy_marks(pb::GraphProto& graph, const std::string& from, const std::string& to);

}  // namespace trainscope
