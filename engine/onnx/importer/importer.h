// Builds a Graph from a validated model, node by node.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/functions/user_gradients.h"
#include "engine/onnx/composites/composition.h"
#include "engine/onnx/import.h"
#include "engine/onnx/importer/import_scope.h"
#include "engine/onnx/importer/sequences.h"
#include "engine/onnx/importer/stage_serials.h"
#include "engine/onnx/model_impl.h"
#include "engine/onnx/stage_metadata.h"

namespace trainscope {

// What a Loop is made of besides its body: values of the graph around it, and of the body.
struct LoopParts {
  ValueId trips = kNoValue;           // an i64 scalar
  std::int64_t most = 0;              // trips that there is room for
  std::vector<ValueId> carried = {};  // into the first trip
  std::vector<ValueId> sliced = {};
  ValueId number_inside = kNoValue;
  std::vector<ValueId> carried_inside = {};
  std::vector<ValueId> sliced_inside = {};
  std::vector<ValueId> carried_on = {};  // by the body, as the two below
  std::vector<ValueId> stacked = {};
  ValueId condition = kNoValue;  // kNoValue: all trips run
};

class Importer {
 public:
  Importer(const OnnxModel& model, const OpTable& ops, const ImportOptions& options);
  // Of the body of a node of `outer`.
  Importer(Importer& outer, const pb::GraphProto& body, const SourceNode& node);
  Graph run();

 private:
  void add_inputs_and_initializers();
  void add_stage_values();
  void add_input(const ModelTensor& input, const Shape& shape, ValueKind kind);
  void add_known_input(const ModelTensor& input, const Shape& shape, const Tensor& elements);
  void check_known_inputs() const;
  void add_initializer(int index, ValueKind kind);

  // Bodies (bodies.cpp).
  ValueId capture(std::string_view name);
  ValueId add_body_input(const std::string& name, const TensorType& type);
  void add_body_constant(const std::string& name, Tensor tensor);
  void add_body_nodes();
  ValueId body_result(const std::string& name);
  SharedGraph finished_body(std::vector<ValueId> inputs, std::vector<ValueId> outputs);
  Graph stage_body();

  // If, Loop and Scan (control_flow.cpp).
  bool add_control_flow(const SourceNode& node);
  void add_if(Composition& c);
  void write_out(Composition& c, const pb::GraphProto& branch);
  std::vector<ValueId> run_branch(Composition& c, const pb::GraphProto& branch, ValueId trips,
                                  const std::vector<ValueId>& otherwise);
  void add_loop(Composition& c);
  bool plan_trips(Composition& c, bool all_run, LoopParts& parts) const;
  void add_scan(Composition& c);
  static bool is_scan_of_batch(const SourceNode& node);  // batch_scan.cpp
  void add_scan_of_batch(const SourceNode& node);
  std::vector<ValueId> build_loop(Composition& c, Importer& body, const LoopParts& parts);

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
  std::optional<SourceNode> take_user_gradient(SourceNode& node);
  void check_user_gradients() const;
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
  const pb::GraphProto& proto_;                        // the model's graph, or a body
  Importer* outer_ = nullptr;                          // of a body: of the graph around it
  std::string prefix_;                                 // of the names of ONNX nodes in a body
  std::vector<std::pair<ValueId, ValueId>> captured_;  // of a body: its input, the value around it
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
  std::unordered_set<const GradientFunction*> used_gradients_;
  std::size_t expanded_nodes_ = 0;  // that came out of function bodies
  std::size_t expanded_bytes_ = 0;  // of their names and attributes
};

}  // namespace trainscope
