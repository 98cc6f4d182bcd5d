// The serials that a stage file has for its nodes and values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/stage_metadata.h"

namespace trainscope {

// Files of older programs have none: their nodes and values keep the serials that they got when
// they were read.
class StageSerials {
 public:
  void add(ValueId value, Serial id) { values_.emplace_back(value, id); }
  void add(NodeId node, Serial id) { nodes_.emplace_back(node, id); }

  // Gives the graph's nodes and values their serials, where all have one, and gradients what they
  // are of. Throws kBadInput when two have the same.
  void apply(Graph& graph, const StageMetadata& stage) const;

 private:
  std::vector<std::pair<ValueId, Serial>> values_;
  std::vector<std::pair<NodeId, Serial>> nodes_;
};

}  // namespace trainscope
