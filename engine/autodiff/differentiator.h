// The gradients of a value by others, as nodes.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/ir/rewriter.h"
#include "engine/passes/training_options.h"

namespace trainscope {

struct Differentiation {
  ValueId loss = kNoValue;
  std::vector<ValueId> targets;
  std::vector<NodeId> nodes;  // that make the loss, and perhaps others, in order
};

// Appends them to the backward phase and lists them in graph.gradients. Returns how many targets do
// not influence the loss: they get none. Throws kBadInput, naming all nodes without a gradient.
std::size_t append_gradients(Rewriter& rewriter, Differentiation what,
                             const TrainingOptions& options);

}  // namespace trainscope
