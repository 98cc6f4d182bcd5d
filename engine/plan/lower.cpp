// Lowering: the order of execution, and the kernels that a choice allows.
#include "engine/plan/lower.h"

#include <algorithm>
#include <utility>

#include "engine/plan/program_builder.h"

namespace trainscope {

std::vector<const Kernel*> kernels_for(const KernelTable& kernels, std::string_view op, DType dtype,
                                       KernelChoice choice) {
  std::vector<const Kernel*> found = kernels.find(op, dtype);
  if (choice == KernelChoice::kReference) std::ranges::reverse(found);
  if (choice == KernelChoice::kDirect) {
    std::erase_if(found, [](const Kernel* kernel) { return kernel->transforms; });
  }
  return found;
}

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
