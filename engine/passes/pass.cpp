// What a pass asks of its context.
#include "engine/passes/pass.h"

#include <algorithm>

#include "engine/ir/well_known.h"

namespace trainscope {

void PassContext::near_miss(const Graph& graph, NodeId node, std::span<const NodeId> matched,
                            std::string reason) {
  near_miss(graph.node(node), std::move(reason));
  std::vector<std::string>& names = near_misses.back().nodes;
  for (NodeId id : matched) {
    const std::string& name = graph.node(id).name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
}

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
