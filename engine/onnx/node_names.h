// A unique name for every node of a model, also for those that have none.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "engine/onnx/proto.h"

namespace trainscope {

class NodeNames {
 public:
  explicit NodeNames(const pb::GraphProto& graph) {
    for (const pb::NodeProto& node : graph.node()) {
      if (!node.name().empty()) given_.insert(node.name());
    }
  }

  // To be called once per node, in order: the node's own name the first time it appears, else
  // "Op_index".
  std::string take(const pb::NodeProto& node, int index) {
    if (!node.name().empty() && used_.insert(node.name()).second) return node.name();
    std::string name = node.op_type() + "_" + std::to_string(index);
    while (given_.contains(name) || !used_.insert(name).second) name += "_";
    return name;
  }

 private:
  std::unordered_set<std::string_view> given_;
  std::unordered_set<std::string> used_;
};

}  // namespace trainscope
