// Recorded elements as a graph's inputs.
#pragma once

#include <map>
#include <string>

#include "engine/core/tensor.h"
#include "engine/ir/graph.h"

namespace trainscope {

// With the type's dtype and shape; there are as many elements.
Tensor fitted(const Tensor& tensor, const TensorType& type);

// Those of `given` that the graph has inputs, parameters, states or constants for, as it has them.
// Throws kBadInput for another number of elements.
std::map<std::string, Tensor> typed_for(const Graph& graph,
                                        const std::map<std::string, Tensor>& given);

}  // namespace trainscope
