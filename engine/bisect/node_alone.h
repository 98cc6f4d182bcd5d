// A node's outputs of any inputs, without its graph.
#pragma once

#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/builder.h"

namespace trainscope {

// `op`: the node's, or one of its name from another table; `inputs` null: left out. Types of
// outputs are those of the shape rule. Throws what the rule and the evaluator throw; empty: no
// kernel.
std::vector<Tensor> computed_alone(const OpDef& op, const Node& node,
                                   const std::vector<const Tensor*>& inputs,
                                   const Evaluate& evaluate);

}  // namespace trainscope
