// Builder: adds nodes with inferred types. Passes, gradients, decompositions and model builders
// all write graphs through it.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// Computes one node whose inputs are all known; set by the engine from exec/reference.cpp. Null
// result: no kernel for it.
using Evaluate = std::function<std::vector<Tensor>(const OpDef&, const Attributes&,
                                                   const std::vector<const Tensor*>& inputs,
                                                   const std::vector<TensorType>& outputs)>;

class Builder {
 public:
  Builder(Graph& graph, const OpTable& ops) : graph_(graph), ops_(ops) {}

  // One node, its first output. Fails with kBadInput (op, node, shapes in the message) when the
  // inputs do not fit the op.
  ValueId operator()(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  // One node with `output_count` outputs.
  std::vector<ValueId> multi(std::string_view op, std::vector<ValueId> inputs, int output_count,
                             Attributes attributes = {});
  // The same, made[i] telling whether there is an output i; kNoValue for those that there are not.
  std::vector<ValueId> multi(std::string_view op, std::vector<ValueId> inputs,
                             const std::vector<bool>& made, Attributes attributes);

  // ... of an op of any domain.
  std::vector<ValueId> multi(const OpDef& op, std::vector<ValueId> inputs,
                             const std::vector<bool>& made, Attributes attributes);

  // Everything about the node given; names empty: made up from `name`. Used by the importer.
  struct Spec {
    const OpDef* op = nullptr;
    std::string name;
    std::vector<ValueId> inputs;
    std::vector<std::string> output_names;  // "": left out. Size = number of outputs
    Attributes attributes;
    Provenance provenance;
  };
  NodeId add(Spec spec);

  ValueId constant(Tensor tensor, std::string_view name = "constant");
  ValueId ints(const Ints& values) { return constant(Tensor::ints(values), "shape"); }
  // A scalar of the given float type.
  ValueId scalar(double value, DType dtype);
  ValueId input(std::string_view name, TensorType type);
  ValueId state(std::string_view name, TensorType type, SharedTensor initial);

  // The sum of `v` over the axes along which `target` was broadcast to v's shape; v itself when the
  // shapes are equal. The gradient of every broadcasting op goes through this.
  ValueId sum_to(ValueId v, Shape target);
  ValueId reshape(ValueId v, Shape target);  // v itself when the shape is the same

  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  const Shape& shape(ValueId v) const { return graph_.value(v).type.shape; }
  Graph& graph() { return graph_; }
  const OpTable& ops() const { return ops_; }

  // State for the nodes added from now on.
  void insert_before(NodeId node) { before_ = node; }  // kNoNode: at the end
  void set_phase(Phase phase) { phase_ = phase; }
  void set_provenance(Provenance provenance) { provenance_ = std::move(provenance); }
  const Provenance& provenance() const { return provenance_; }
  // The node for which nodes and values are made, to be noted with each; kNoSerial: none.
  void set_made_of(Serial node) { made_of_ = node; }
  // The rule of graph().notes that adds them.
  void set_rule(std::uint16_t rule) { rule_ = rule; }
  // New value names become prefix + op name: "grad/Mul".
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  void set_evaluate(const Evaluate* evaluate) { evaluate_ = evaluate; }

 private:
  std::vector<TensorType> infer(const Spec& spec) const;
  void annotate_known(NodeId node);
  void note_made(Serial made);
  ValueId add_value(Value value);

  Graph& graph_;
  const OpTable& ops_;
  NodeId before_ = kNoNode;
  Phase phase_ = Phase::kForward;
  Provenance provenance_;
  std::string prefix_;
  Serial made_of_ = kNoSerial;
  std::uint16_t rule_ = 0;
  const Evaluate* evaluate_ = nullptr;
};

}  // namespace trainscope
