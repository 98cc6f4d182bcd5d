// What a step is by definition: the model's nodes, their gradients and the optimizer in f64,
// without fusions; and the same as the run rounds it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/run/numerics/unfused_step.h"

namespace trainscope {

// The keys of the rows that traces have for the values of an unfused step.
class RowKeys {
 public:
  explicit RowKeys(const UnfusedStep& step);

  // Of the value itself, the most usual first; empty: no trace knows it.
  std::span<const std::string> of(ValueId value) const { return keys_[index(value)]; }
  // Of the parameter or state whose next elements a value is; empty: of none.
  const std::string& next_of(ValueId value) const { return next_[index(value)]; }

 private:
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value); }

  std::vector<std::vector<std::string>> keys_;
  std::vector<std::string> next_;
};

// The step's options with all floats in f64.
CompileOptions in_f64(CompileOptions options);

class DefinedStep {
 public:
  // `options` as for training. Throws what build_stages() throws.
  DefinedStep(const OnnxModel& model, const CompileOptions& options);

  const UnfusedStep& truth() const { return truth_; }    // f64, with the update
  const UnfusedStep& single() const { return single_; }  // as the run computes, to the gradients
  const RowKeys& keys() const { return keys_; }
  const RowKeys& single_keys() const { return single_keys_; }

 private:
  UnfusedStep truth_;
  UnfusedStep single_;
  RowKeys keys_;
  RowKeys single_keys_;
};

// A node as the model's author knows it: of what a gradient node is a part, of what a decomposed
// one comes from.
struct NamedNode {
  std::string op;
  std::string name;
};
NamedNode model_node(const Graph& graph, const Node& node);
// The node of the forward phase whose gradient this one is a part of; kNoNode: it is of none.
NodeId forward_node(const Graph& graph, const Node& node);

}  // namespace trainscope
