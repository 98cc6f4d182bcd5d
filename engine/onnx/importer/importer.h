// Builds a Graph from a validated model, node by node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/onnx/composites/composition.h"
#include "engine/onnx/import.h"
#include "engine/onnx/importer/import_scope.h"
#include "engine/onnx/importer/sequences.h"
#include "engine/onnx/importer/stage_serials.h"
#include "engine/onnx/model_impl.h"
#include "engine/onnx/stage_metadata.h"

namespace trainscope {

class Importer {
 public:
  Importer(const OnnxModel& model, const OpTable& ops, const ImportOptions& options);
  Graph run();

 private:
  void add_inputs_and_initializers();
  void add_stage_values();
  void add_input(const ModelTensor& input, const Shape& shape, ValueKind kind);
  void add_known_input(const ModelTensor& input, const Shape& shape, const Tensor& elements);
  void check_known_inputs() const;
  void add_initializer(int index, ValueKind kind);

  void add_nodes();
  SourceNode source_node(const pb::NodeProto& node, const std::string& name);
  NodeNote apply_note(const pb::NodeProto& node, SourceNode& source);
  void keep_serials(const std::string& node, const NodeNote& note);
  void add_source_node(SourceNode node);
  void add_with_stops(SourceNode node);
  void add_padded_lookup(SourceNode node, std::int64_t row);
  void stop_input(SourceNode& node, int slot);
  bool composed(const SourceNode& node);
  void take_torch_form(SourceNode& node) const;
  std::vector<SourceNode> rewritten(const SourceNode& node);
  void count_expanded(const SourceNode& node);
  void add_constant(const SourceNode& node);
  void build(SourceNode node, const OpDef& op);

  void add_results();
  void check_outputs() const;
  void add_stage_results();
  void add_update(ValueId state, ValueId value);
  void add_kept_values();
  ValueId find(std::string_view name, std::string_view what) const;
  DType dtype_of(DType dtype) const;

  const OnnxModel& source_;
  const OnnxModel::Impl& model_;
  const OpTable& ops_;
  const ImportOptions& options_;
  Graph graph_;
  Builder builder_;
  ImportScope scope_;
  Sequences sequences_;
  SharedConstants shared_constants_;  // of composites
  bool is_stage_;
  StageMetadata stage_;
  StageSerials stage_serials_;
  Provenance provenance_;                    // of the ONNX node being added
  std::unordered_set<std::string> updated_;  // states with an update
  std::size_t expanded_nodes_ = 0;           // that came out of function bodies
  std::size_t expanded_bytes_ = 0;           // of their names and attributes
};

}  // namespace trainscope
