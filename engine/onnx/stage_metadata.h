// What a stage has and ONNX has no field for: kinds, updates, gradients, loss (as JSON in the
// model's metadata_props), phase and provenance of a node (as JSON in its doc_string).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/proto.h"

namespace trainscope {

// The same by names.
struct StageMetadata {
  std::string graph_name = {};
  std::vector<std::pair<std::string, ValueKind>> values =
      {};                                  // all but node outputs, in order of id
  std::vector<Serial> value_serials = {};  // of `values`; empty in files of older programs
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  std::vector<std::pair<std::string, std::string>> updates = {};    // state, value
  std::vector<std::pair<std::string, std::string>> gradients = {};  // of, gradient
  // Value::gradient_of, of those that have any.
  std::vector<std::pair<std::string, std::vector<Serial>>> gradient_of = {};
  std::string loss = {};  // "": none
};

StageMetadata stage_metadata(const Graph& graph);
void write_stage_metadata(const StageMetadata& stage, pb::ModelProto& model);

bool has_stage_metadata(const pb::ModelProto& model);
// kBadInput when it is damaged.
StageMetadata read_stage_metadata(const pb::ModelProto& model);

struct NodeNote {
  Phase phase = Phase::kForward;
  Provenance provenance;
  Serial serial = kNoSerial;           // kNoSerial in files of older programs
  std::vector<Serial> output_serials;  // an output that is left out has none
  // Attributes that float32, ONNX's only number, would round.
  std::vector<std::pair<std::string, Attribute>> exact = {};
};

std::string node_note_text(const Graph& graph, const Node& node);
NodeNote read_node_note(std::string_view text);

}  // namespace trainscope
