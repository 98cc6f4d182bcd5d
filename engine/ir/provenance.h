// Where a node or value comes from: the ties between kernel, node, stage and ONNX node.
#pragma once

#include <string>
#include <vector>

namespace trainscope {

struct Provenance {
  std::vector<std::string> sources;  // names of the ONNX nodes it stems from, in model order
  std::string pass;                  // the pass that made it ("import" for the model's own)
};

// The union of both source lists, keeping the order of first appearance.
inline void merge_sources(Provenance& into, const Provenance& from) {
  for (const std::string& source : from.sources) {
    bool known = false;
    for (const std::string& have : into.sources) known = known || have == source;
    if (!known) into.sources.push_back(source);
  }
}

}  // namespace trainscope
