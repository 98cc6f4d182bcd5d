// Sequences of tensors and optional values. How long a sequence is must be known before the run: it
// is a list of names then, and the ops on it are gone when the graph is built.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/importer/import_scope.h"

namespace trainscope {

// Whether the op makes, changes or reads a sequence or an optional value.
bool is_sequence_op(std::string_view domain, std::string_view op);

class Sequences {
 public:
  // The nodes that are left of a node about sequences; none when it is about tensors only.
  // kBadInput for a position outside, unsupported where the data decides.
  std::optional<std::vector<SourceNode>> convert(ImportScope& scope, const SourceNode& node);

 private:
  using Names = std::vector<std::string>;

  const Names& list(const SourceNode& node) const;
  void construct(const SourceNode& node);
  std::vector<SourceNode> split(ImportScope& scope, const SourceNode& node);
  void insert(ImportScope& scope, const SourceNode& node);
  void erase(ImportScope& scope, const SourceNode& node);
  std::vector<SourceNode> concat(ImportScope& scope, const SourceNode& node) const;
  // The output is another name of input 0: a sequence, or a tensor as the node says.
  std::vector<SourceNode> pass_on(const SourceNode& node);

  std::map<std::string, Names, std::less<>> lists_;
};

}  // namespace trainscope
