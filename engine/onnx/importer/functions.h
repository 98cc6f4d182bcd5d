// Ops written as functions of other ops: the model's own and those of ONNX's standard.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/importer/import_scope.h"
#include "engine/onnx/model_impl.h"

namespace trainscope {

// Whether the op of a node has a body that can stand in for it, as far as is known before types
// are. The model's own functions go before rows, ONNX's come after them.
bool has_model_function(const OnnxModel::Impl& model, std::string_view domain, std::string_view op);
bool has_standard_function(std::string_view domain, std::string_view op, int opset);

// The ops that such a body is made of; empty when the body depends on types.
struct BodyOp {
  std::string domain;
  std::string op;
  int opset = 0;
  auto operator<=>(const BodyOp&) const = default;
};
std::vector<BodyOp> body_ops(const OnnxModel::Impl& model, const BodyOp& call);

// The nodes of the body, with the caller's names for inputs and outputs and fresh ones inside.
// kBadInput when bodies nest too deep (recursion). Empty result: ONNX has no body for these types.
std::vector<SourceNode> expand_model_function(const OnnxModel::Impl& model, ImportScope& scope,
                                              const SourceNode& call);
std::vector<SourceNode> expand_standard_function(const OnnxModel::Impl& model, ImportScope& scope,
                                                 const SourceNode& call);

}  // namespace trainscope
