// Where the marks of PyTorch's exporter say that no gradient flows: the padding row of an
// embedding, what was detached. The numbers of the forward pass are the same with and without.
#pragma once

#include "engine/onnx/initializers/model_edit.h"

namespace trainscope {

// Fills padding_rows and stopped_inputs of the model, and says so in its remarks; what the file
// does not tell enough of becomes a fault. Before nodes are added to the model or removed.
void find_gradient_stops(ModelEdit& edit);

// A note that names the buffers which the forward pass gives new elements in PyTorch, and not
// here; running statistics of batch norms are left out.
void find_mutated_buffers(ModelEdit& edit);

}  // namespace trainscope
