// What conversions of single nodes (adapters, function bodies) see of the graph being built.
#pragma once

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
  int depth = 0;  // function bodies around it
};

class ImportScope {
 public:
  ImportScope(Graph& graph, Builder& builder, const pb::GraphProto& model)
      : graph_(graph), builder_(builder), model_(model) {}

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
  std::unordered_set<std::string_view> reserved_;  // filled when first needed
};

}  // namespace trainscope
