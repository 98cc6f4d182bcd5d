// Bodies node by node on tensors of their own: what their calls are compared with.
#pragma once

#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// The outputs of a node whose body this is. `inputs` are the node's, `outputs` their types. Fails
// with kRunFailed where the data asks for more trips than there is room for.
std::vector<Tensor> reference_trips(const OpBody& body, const std::vector<const Tensor*>& inputs,
                                    const std::vector<TensorType>& outputs,
                                    const Evaluate& evaluate);

}  // namespace trainscope
