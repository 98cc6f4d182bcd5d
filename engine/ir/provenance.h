// Where a node or value comes from: the ties between kernel, node, stage and ONNX node.
#pragma once

#include <string>
#include <vector>

namespace trainscope {

struct Provenance {
  std::vector<std::string> sources;  // names of the ONNX nodes it stems from, in model order
  std::string pass;                  // the pass that made it ("import" for the model's own)
};

}  // namespace trainscope
