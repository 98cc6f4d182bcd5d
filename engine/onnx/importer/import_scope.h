// What conversions of single nodes (adapters, function bodies) see of the graph being built.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/onnx/proto.h"

namespace trainscope {

// A node on its way in: ONNX's names, our attributes.
struct SourceNode {
  std::string op;
  std::string domain;
  int opset = 0;
  std::string name;    // unique; of the ONNX node, or made from it
  std::string source;  // the ONNX node that it stems from
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Attributes attributes;
  int depth = 0;                         // function bodies around it
  const pb::NodeProto* proto = nullptr;  // of the model; null: it is of a function's body
  // False: no gradient of the user's is looked for, because it has one, or is a part of a node that
  // was asked.
  bool may_have_gradient = true;
};

class ImportScope {
 public:
  ImportScope(Graph& graph, Builder& builder, const pb::GraphProto& model)
      : graph_(graph), builder_(builder), model_(model) {}

  // What a name of the model is called in the graph: in a branch that is written out, something
  // else.
  const std::string& resolved(const std::string& name) const;
  void open_branch() { branches_.emplace_back(); }
  void name_in_branch(const std::string& name, std::string in_graph) {
    branches_.back()[name] = std::move(in_graph);
  }
  void close_branch() { branches_.pop_back(); }

  // The value that the graph, or what is around a body, has under a name; kNoValue: none.
  ValueId find(std::string_view name) const;
  // Of a body: asks what is around it for names that it does not make.
  void set_outer(std::function<ValueId(std::string_view)> outer) { outer_ = std::move(outer); }

  // An output that there is not, and why; whoever reads it is refused with these words.
  void refuse(const std::string& name, std::string why) { refused_[name] = std::move(why); }
  // Throws the reason, if there is one.
  void check_not_refused(const std::string& name) const;

  // The value of an input that the node gives; kBadInput when nothing produced it.
  ValueId value(const SourceNode& node, std::size_t input) const;
  const TensorType& type(const SourceNode& node, std::size_t input) const;
  // Elements known before the run, or null; parameters and states have none.
  const Tensor* known(const SourceNode& node, std::size_t input) const;
  // Integers known before the run; kBadInput when they depend on the data.
  Ints known_ints(const SourceNode& node, std::size_t input) const;

  // A name that neither the graph nor the rest of the model uses.
  std::string fresh(std::string_view wanted);
  // A new constant's name.
  std::string constant(Tensor tensor, std::string_view wanted);
  std::string ints(const Ints& values, std::string_view wanted) {
    return constant(Tensor::ints(values), wanted);
  }

 private:
  Graph& graph_;
  Builder& builder_;
  const pb::GraphProto& model_;
  std::unordered_set<std::string_view> reserved_;             // filled when first needed
  std::vector<std::map<std::string, std::string>> branches_;  // those around, the innermost last
  std::function<ValueId(std::string_view)> outer_;
  std::map<std::string, std::string> refused_;
};

}  // namespace trainscope
