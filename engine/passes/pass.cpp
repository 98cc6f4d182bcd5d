// What a pass asks of its context.
#include "engine/passes/pass.h"

#include "engine/ir/well_known.h"

namespace trainscope {

// Behind the optimizer's step the gradients of parameters are no results any more.
bool PassContext::has_gradients(const Graph& graph) const {
  const Graph& whole = around == nullptr ? graph : *around;
  return !whole.gradients.empty() || whole.find(kLearningRateInput) != kNoValue;
}

bool PassContext::awaits_gradients(const Graph& graph) const {
  const bool wants = options.mode == GraphMode::kTrain || options.mode == GraphMode::kGradients;
  return wants && !has_gradients(graph);
}

}  // namespace trainscope
