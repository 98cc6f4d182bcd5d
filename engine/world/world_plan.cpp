// From a step to one device's share of it: shard, place, recompute, time.
#include "engine/world/world_plan.h"

#include <algorithm>

#include "engine/recompute/recompute.h"
#include "engine/world/place.h"
#include "engine/world/tensor_split.h"
#include "engine/world/zero.h"
#include "memplan/bounds.h"

namespace trainscope {
namespace {

std::int64_t bytes_of(const Graph& graph, ValueId v) {
  return static_cast<std::int64_t>(graph.value(v).type.bytes());
}

void count_states(const Graph& graph, DeviceShare& share) {
  for (const OptimizerNode& step : optimizer_nodes(graph)) {
    for (ValueId v : step.parameters) share.parameter_bytes += bytes_of(graph, v);
    for (ValueId v : step.gradients) share.gradient_bytes += bytes_of(graph, v);
    for (ValueId v : step.states) share.state_bytes += bytes_of(graph, v);
  }
}

std::vector<double> all_seconds(const Graph& graph, const MachineModel& machine) {
  std::vector<double> seconds = kernel_seconds(graph, machine);
  const std::vector<double> messages = message_seconds(graph, machine);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += messages[i];
  return seconds;
}

DeviceShare plan_device(Graph graph, std::span<const std::int64_t> workspaces, const OpTable& ops,
                        const WorldOptions& options) {
  const Layout& layout = options.machine.layout;
  apply_zero(graph, ops, layout.zero, layout.data());
  DeviceShare share;
  count_states(graph, share);
  share.eager_bytes = eager_peak_bytes(graph);
  const Program program = place_graph(std::move(graph), workspaces, options.lower);
  share.plain_bytes = program.arena_bytes;
  share.peak_bytes = program.arena_bytes;
  share.lower_bound_bytes = program.solution.lower_bound_bytes;
  const bool fits = !options.budget_bytes || share.plain_bytes <= *options.budget_bytes;
  if (fits) {
    share.time = step_time(program.graph, options.machine, options.micro_batches);
    return share;
  }
  const RecomputePlan plan = plan_recompute(
      program, all_seconds(program.graph, options.machine), ops,
      {.mode = RecomputeMode::kAuto, .budget_bytes = options.budget_bytes}, options.lower);
  share.peak_bytes = plan.arena_bytes;
  share.repeats = static_cast<std::int64_t>(plan.repeats.size());
  share.time = step_time(plan.graph, options.machine, options.micro_batches);
  return share;
}

}  // namespace

WorldPlan plan_world(const Program& step, const OpTable& ops, const WorldOptions& options) {
  check_layout(options.machine.layout);
  WorldPlan plan{.layout = options.machine.layout, .stages = {}};
  Graph graph = step.graph;
  std::vector<std::int64_t> workspaces = workspaces_of(step);
  split_tensors(graph, ops, plan.layout.tensor, workspaces);
  plan.stages.push_back(plan_device(std::move(graph), workspaces, ops, options));
  const StepTime& time = plan.device().time;
  plan.step_seconds = time.seconds;
  plan.message_seconds = time.message_seconds;
  plan.exposed_seconds = time.seconds - time.kernel_seconds;
  plan.sent_bytes = time.sent_bytes;
  return plan;
}

}  // namespace trainscope
