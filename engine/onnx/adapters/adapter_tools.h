// What adapters have in common: attributes that become inputs, reshapes around a node.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/importer/import_scope.h"

namespace trainscope {

using SourceNodes = std::vector<SourceNode>;

bool has_input(const SourceNode& node, std::size_t input);
// The node gets a name for input `input`; those before it that it lacks are left out.
void set_input(SourceNode& node, std::size_t input, std::string name);

// The value of attribute `name` as input `input`, if the node gives it.
void ints_to_input(ImportScope& scope, SourceNode& node, std::string_view name, std::size_t input);
// A number as a scalar input of the type of input 0, if the node gives it.
void number_to_input(ImportScope& scope, SourceNode& node, std::string_view name,
                     std::size_t input);

// to = Reshape(from, dims), a node that stems from `node`; zeros in `dims` are zeros.
struct ReshapeSpec {
  std::string from;
  std::string to;
  Ints dims;
  std::string_view suffix;  // of its name
};
SourceNode reshape_node(ImportScope& scope, const SourceNode& node, const ReshapeSpec& spec);

// Collects the nodes that one node becomes.
class Rewritten {
 public:
  Rewritten(ImportScope& scope, const SourceNode& from) : scope_(scope), from_(from) {}

  // The name of a result that the nodes after it read.
  std::string add(std::string_view op, std::vector<std::string> inputs, std::string_view label,
                  Attributes attributes = {});
  std::string ints(const Ints& values, std::string_view label);
  SourceNodes take(SourceNode last);

 private:
  ImportScope& scope_;
  const SourceNode& from_;
  SourceNodes nodes_;
};

// "node 'fc' (Gemm of opset 6)".
std::string adapted_label(const SourceNode& node);

}  // namespace trainscope
