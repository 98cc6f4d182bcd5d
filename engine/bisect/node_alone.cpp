// What the op's rules see of a call whose inputs are all known.
#include "engine/bisect/node_alone.h"

#include <memory>

#include "engine/ir/op_def.h"

namespace trainscope {

std::vector<Tensor> computed_alone(const OpDef& op, const Node& node,
                                   const std::vector<const Tensor*>& inputs,
                                   const Evaluate& evaluate) {
  std::vector<TensorType> given;
  const auto present = std::make_unique<bool[]>(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    present[i] = inputs[i] != nullptr;
    given.push_back(present[i] ? inputs[i]->type() : TensorType{});
  }
  std::vector<TensorType> types = op.shape({.attributes = node.attributes,
                                            .inputs = given,
                                            .constants = inputs,
                                            .present = {present.get(), inputs.size()},
                                            .outputs = {},
                                            .output_count = static_cast<int>(node.outputs.size())});
  types.resize(node.outputs.size());
  return evaluate(op, node.attributes, inputs, types);
}

}  // namespace trainscope
