// Every rule that a model file must keep before the importer looks at it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/import.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {

// The newest versions whose meaning is known here.
inline constexpr int kOldestIrVersion = 3;
inline constexpr int kNewestIrVersion = 14;
inline constexpr int kNewestOpset = 28;
inline constexpr int kTrainscopeOpset = 1;

// What validation learns on the way.
struct ModelFacts {
  std::map<std::string, int, std::less<>> opsets;  // by domain; ONNX's own is ""
  std::vector<ModelTensor> inputs;                 // without those that are initializers
  std::vector<ModelTensor> outputs;
  std::vector<ModelInitializer> initializers;
};

// Fails with kBadInput at the first broken rule. Tensors are checked against their byte counts and
// files, but not read. Nodes without a row pass: missing_ops lists them.
ModelFacts validate_model(const pb::ModelProto& model, ExternalFiles& files);

using Nodes = google::protobuf::RepeatedPtrField<pb::NodeProto>;
// Fails at the first of a graph's nodes that breaks a rule.
using CheckNodes = std::function<void(const Nodes&)>;

// "node 'name' (Conv)", or "node 12 (Conv)" for a node without a name.
std::string node_label(const pb::NodeProto& node, int index);
// "ai.onnx" is another name of "".
std::string_view plain_domain(std::string_view domain);

// If, Loop and Scan of ONNX's domain.
bool is_control_flow(std::string_view op);
// Names that the bodies of a node read and do not make: what is around them must. Each once.
std::vector<std::string_view> captured_names(const pb::NodeProto& node);
// The graphs among the attributes of a node, and below, whose nodes are checked by `check_nodes`:
// names, initializers, edges.
void check_bodies(const pb::NodeProto& node, std::string_view where, ExternalFiles& files,
                  const CheckNodes& check_nodes);

// Of a name in a model file, or one made of several by expanding function bodies. Exporters' names
// have some hundred bytes at most; graphs hold each several times.
inline constexpr std::size_t kMaxNameBytes = 4096;
// kBadInput for a name that is longer. A stage may have more: passes make names from names.
void check_name_lengths(const pb::ModelProto& model);
// kBadInput unless the name is valid UTF-8 without control characters and not empty.
void check_name(std::string_view name, std::string_view what);

// Edges of a list of nodes: each name is produced once, and before it is read. `given` are the
// names known before the first node.
void check_edges(const Nodes& nodes, const std::vector<std::string_view>& given,
                 const std::vector<std::string_view>& results);

}  // namespace trainscope
