// Orders with rematerializations, placed.
#include "engine/recompute/placed_step.h"

#include "engine/core/error.h"

namespace trainscope {

PlacedStep::PlacedStep(const Program& plain, const LowerOptions& lower)
    : graph_(plain.graph),
      arena_(plain.arena()),
      lower_(lower),
      lifetimes_(plain.graph, lower),
      order_(phase_order(plain.graph)),
      workspace_of_(workspaces_of(plain)) {}

ExecutionOrder PlacedStep::order_with(std::span<const Rematerialization> rematerializations) const {
  return rematerialized_order(graph_, order_, rematerializations);
}

PlacedStep::Height PlacedStep::place(const ExecutionOrder& order) const {
  if (order.originals.empty()) {  // the plain step
    return {.arena_bytes = arena_.bytes, .bound_bytes = arena_.lower_bound_bytes};
  }
  return place(order,
               {.seconds = lower_.seconds, .threads = lower_.threads, .stop = lower_.watch.stop});
}

PlacedStep::Height PlacedStep::glance(const ExecutionOrder& order, std::string_view first) const {
  return place(order, {.seconds = lower_.seconds,
                       .first = first.empty() ? arena_.method : first,
                       .patience = memplan::Patience::kGlance,
                       .stop = lower_.watch.stop});
}

PlacedStep::Height PlacedStep::place(const ExecutionOrder& order,
                                     const memplan::Options& options) const {
  std::vector<std::int64_t> workspaces;
  workspaces.reserve(order.executions.size());
  for (const Execution& execution : order.executions) {
    const NodeId node = execution.node;
    const bool transfer = node == kNoNode;
    if (!transfer && graph_.node(node).op->is_view) continue;
    workspaces.push_back(transfer ? 0 : workspace_of_[static_cast<std::size_t>(node)]);
  }
  const memplan::Problem problem =
      height_problem(lifetimes_.find(order, workspaces), workspaces, arena_.alignment_bytes);
  const memplan::Result placed = memplan::solve(problem, options);
  lower_.watch.check();
  CHECK_INVARIANT(placed.status == memplan::Status::kPlaced);
  return {.arena_bytes = placed.solution.height_bytes,
          .bound_bytes = placed.solution.lower_bound_bytes,
          .method = placed.solution.method};
}

}  // namespace trainscope
