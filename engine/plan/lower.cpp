// Lowering: kernels for a graph in its order of execution, and a program of both.
#include "engine/plan/lower.h"

#include <algorithm>
#include <utility>

#include "engine/plan/program_builder.h"

namespace trainscope {

std::vector<NodeId> phase_order(const Graph& graph) {
  std::vector<NodeId> order = graph.order();
  std::ranges::stable_sort(order, {}, [&graph](NodeId id) { return graph.node(id).phase; });
  return order;
}

Program lower(Graph graph, DeviceHandle device, const LowerOptions& options) {
  ProgramBuilder builder(std::move(graph), std::move(device), options);
  builder.choose_kernels();
  return builder.build();
}

}  // namespace trainscope
