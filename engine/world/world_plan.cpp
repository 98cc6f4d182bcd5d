// From a step to what one device of it runs: shard, place, recompute, time.
#include "engine/world/world_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/recompute/recompute.h"
#include "engine/world/collective_ops.h"
#include "engine/world/dense_rows.h"
#include "engine/world/pipeline.h"
#include "engine/world/place.h"
#include "engine/world/tensor_split.h"
#include "engine/world/zero.h"
#include "memplan/bounds.h"

namespace trainscope {
namespace {

void count_states(const Graph& graph, DeviceShard& shard) {
  for (const OptimizerNode& step : optimizer_nodes(graph)) {
    for (ValueId v : step.parameters) add_saturating(shard.parameter_bytes, bytes_of(graph, v));
    for (ValueId v : step.gradients) add_saturating(shard.gradient_bytes, bytes_of(graph, v));
    for (ValueId v : step.states) add_saturating(shard.state_bytes, bytes_of(graph, v));
  }
}

std::vector<double> all_seconds(const Graph& graph, const MachineModel& machine) {
  std::vector<double> seconds = kernel_seconds(graph, machine);
  const std::vector<double> messages = message_seconds(graph, machine);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += messages[i];
  return seconds;
}

// Bytes that a micro-batch leaves for its backward: what other micro-batches hold meanwhile.
std::int64_t saved_bytes(const Program& program) {
  std::int64_t backward = program.times;
  for (const CallId id : calls_by_time(program)) {
    const Call& call = program.call(id);
    if (call.phase != Phase::kForward) backward = std::min(backward, call.time);
  }
  const memplan::Problem problem = placement_problem(program);
  std::int64_t bytes = 0;
  std::size_t i = 0;
  for (const PlannedBuffer& buffer : program.buffers) {
    if (buffer.space == Space::kHost) continue;
    const memplan::Buffer& placed = problem.buffers[i++];
    const bool saved = buffer.begin < backward && buffer.end > backward;
    if (!buffer.persistent && saved) bytes += memplan::occupied_bytes(problem, placed);
  }
  return bytes;
}

// A stage without a plan in its budget.
struct Refusal {
  std::int64_t least_bytes = 0;  // the least arena that was found
  std::string why;
};

struct PlannedStage {
  DeviceShard shard;
  std::optional<Refusal> refusal;
};

// The node that needs most by itself.
std::string hungriest_node(const Program& program) {
  const Node* hungriest = nullptr;
  std::int64_t most = -1;
  for (const CallId id : calls_by_time(program)) {
    const Call& call = program.call(id);
    const Node& node = program.graph.node(call.node);
    std::int64_t bytes = workspace_bytes_of(program, call);
    for (const std::vector<ValueId>* list : {&node.inputs, &node.outputs}) {
      for (ValueId v : *list) {
        if (v != kNoValue && program.graph.value(v).kind == ValueKind::kNode) {
          bytes += bytes_of(program.graph, v);
        }
      }
    }
    if (bytes <= most || node.phase == Phase::kUpdate) continue;
    most = bytes;
    hungriest = &node;
  }
  if (hungriest == nullptr) return "no node";
  return fmt::format("node '{}' ({})", printable(hungriest->name), hungriest->op->name);
}

// One device of a stage.
class Device1F1B {
 public:
  Device1F1B(const PipelineStage& stage, std::int64_t in_flight, const OpTable& ops,
             const WorldOptions& options)
      : stage_(stage), in_flight_(in_flight), ops_(ops), options_(options) {}

  PlannedStage plan() {
    Graph graph = stage_.graph;
    apply_zero(graph, ops_, options_.machine.layout.zero, options_.machine.layout.data());
    count_states(graph, shard_);
    shard_.eager_bytes = eager_bytes(graph);
    program_ = place_graph(std::move(graph), stage_.workspaces, options_.lower);
    const std::int64_t held = held_bytes(program_);
    const Program full =
        held > 0 ? place_graph(program_.graph, stage_.workspaces, options_.lower, held) : program_;
    shard_.eager_bytes += held;
    shard_.plain_bytes = full.arena().bytes;
    shard_.peak_bytes = full.arena().bytes;
    shard_.lower_bound_bytes = full.arena().lower_bound_bytes;
    if (options_.budget_bytes && shard_.plain_bytes > *options_.budget_bytes) {
      return recompute(*options_.budget_bytes);
    }
    take_time(program_.graph);
    return {.shard = shard_, .refusal = std::nullopt};
  }

  // After plan() has accepted one.
  void tell(std::size_t stage) const {
    if (!options_.on_placed) return;
    const Program placed = accepted_ ? place(*accepted_)
                                     : place_graph(program_.graph, stage_.workspaces,
                                                   options_.lower, held_bytes(program_));
    options_.on_placed({.stage = stage, .program = placed, .plain = program_.graph});
  }

 private:
  // A plan, and its arena with all micro-batches that are in flight.
  struct Candidate {
    RecomputePlan plan;
    std::int64_t arena_bytes = 0;
  };

  // With embeddings as they are by default, sparse=False.
  std::int64_t eager_bytes(const Graph& graph) const {
    Graph dense = graph;
    make_rows_dense(dense, ops_);
    return eager_peak_bytes(dense);
  }

  void take_time(const Graph& graph) {
    shard_.time = step_time(graph, options_.machine, options_.micro_batches);
    const StepTime one = step_time(graph, options_.machine, 1);
    const double each = step_time(graph, options_.machine, 2).seconds - one.seconds;
    const double forward = std::min(each, forward_seconds(graph, options_.machine));
    shard_.micro_batch = {.forward = forward, .backward = each - forward};
    shard_.tail_seconds = one.seconds - each;
  }

  Candidate candidate(RecomputeOptions limits) const {
    // What comes from another stage cannot be recomputed here.
    for (NodeId id : program_.graph.order()) {
      const Node& node = program_.graph.node(id);
      if (node.op == &receive_op() && node.phase == Phase::kForward) {
        limits.keep.push_back(program_.graph.value(node.outputs[0]).name);
      }
    }
    limits.mode = RecomputeMode::kAuto;
    limits.link = options_.machine.link;
    RecomputePlan plan = plan_recompute(program_, all_seconds(program_.graph, options_.machine),
                                        ops_, limits, options_.lower);
    const std::int64_t arena_bytes = arena_of(plan);
    return {.plan = std::move(plan), .arena_bytes = arena_bytes};
  }

  struct Within {
    std::optional<Candidate> found = {};
    std::int64_t least_bytes = 0;  // where none is found: the least that has a plan
  };

  // In so many bytes of one micro-batch.
  Within candidate_within(std::int64_t bytes) const {
    try {
      return {.found = candidate({.budget_bytes = bytes})};
    } catch (const NoPlanFits& refusal) {
      return {.least_bytes = refusal.least_bytes};
    }
  }

  // Whatever time it takes.
  Candidate least_candidate() const {
    constexpr double kAnyOverhead = 1e9;
    return candidate({.max_overhead = kAnyOverhead});
  }

  // Of the nodes of a plan's graph; transfers have none.
  std::vector<std::int64_t> workspaces_in(const RecomputePlan& plan) const {
    std::vector<std::int64_t> workspaces;
    const std::vector<std::int64_t> known = workspaces_of(program_);
    for (NodeId origin : plan.graph.origin) {
      workspaces.push_back(origin == kNoNode ? 0 : known[static_cast<std::size_t>(origin)]);
    }
    return workspaces;
  }

  // Of the other micro-batches in flight.
  std::int64_t held_bytes(const Program& one) const { return (in_flight_ - 1) * saved_bytes(one); }

  // With all micro-batches that are in flight.
  Program place(const RecomputePlan& plan) const {
    const std::vector<std::int64_t> workspaces = workspaces_in(plan);
    Program one = place_graph(plan.graph.graph, workspaces, options_.lower);
    if (in_flight_ == 1) return one;
    return place_graph(plan.graph.graph, workspaces, options_.lower, held_bytes(one));
  }

  std::int64_t arena_of(const RecomputePlan& plan) const {
    return in_flight_ == 1 ? plan.arena_bytes : place(plan).arena().bytes;
  }

  // What all micro-batches in flight have in host memory.
  std::int64_t host_bytes_of(const RecomputePlan& plan) const {
    if (plan.host_bytes == 0) return 0;
    return in_flight_ * place_graph(plan.graph.graph, workspaces_in(plan), options_.lower)
                            .space(Space::kHost)
                            .bytes;
  }

  // The planner knows one micro-batch; what it may have of the budget is searched for, from what is
  // known to have a plan.
  Candidate quickest_within(std::int64_t budget_bytes, Candidate best) const {
    std::int64_t low = best.plan.arena_bytes;
    std::int64_t high = std::min(budget_bytes, program_.arena().bytes);
    constexpr int kAttempts = 6;
    for (int attempt = 0; attempt < kAttempts && low < high; ++attempt) {
      const std::int64_t middle = low + (high - low) / 2;
      std::optional<Candidate> found = candidate_within(middle).found;
      const bool too_large = found && found->arena_bytes > budget_bytes;
      (too_large ? high : low) = middle;
      if (!found || too_large) continue;
      if (found->plan.seconds < best.plan.seconds) best = std::move(*found);
    }
    return best;
  }

  // A budget of as much as the least plan needs has a plan.
  PlannedStage recompute(std::int64_t budget_bytes) {
    if (in_flight_ == 1) {
      Within within = candidate_within(budget_bytes);
      if (within.found) return accepted(std::move(*within.found));
      return {.shard = shard_, .refusal = refused(within.least_bytes)};
    }
    Candidate least = least_candidate();
    const std::int64_t least_bytes = std::min(shard_.plain_bytes, least.arena_bytes);
    if (least_bytes > budget_bytes) return {.shard = shard_, .refusal = refused(least_bytes)};
    if (options_.aim == WorldAim::kAnyPlan) return accepted(std::move(least));
    return accepted(quickest_within(budget_bytes, std::move(least)));
  }

  PlannedStage accepted(Candidate chosen) {
    shard_.peak_bytes = chosen.arena_bytes;
    shard_.rematerialized_nodes = chosen.plan.rematerialized_nodes();
    shard_.host_bytes = host_bytes_of(chosen.plan);
    take_time(chosen.plan.graph.graph);
    accepted_ = std::move(chosen.plan);
    return {.shard = shard_, .refusal = std::nullopt};
  }

  Refusal refused(std::int64_t least_bytes) const {
    return {.least_bytes = least_bytes,
            .why = fmt::format("most are needed by {}, its inputs, outputs and workspace, beside "
                               "{} bytes of parameters and states and {} micro-batches in flight",
                               hungriest_node(program_), program_.persistent_bytes, in_flight_)};
  }

  const PipelineStage& stage_;
  std::int64_t in_flight_;
  const OpTable& ops_;
  const WorldOptions& options_;
  Program program_;  // of one micro-batch
  std::optional<RecomputePlan> accepted_;
  DeviceShard shard_;
};

// The budget that every stage has a plan in is that of the stage that needs most.
[[noreturn]] void refuse(std::int64_t budget_bytes, const std::vector<PlannedStage>& stages) {
  std::size_t worst = stages.size();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i].refusal) continue;
    const bool more = worst == stages.size() ||
                      stages[i].refusal->least_bytes > stages[worst].refusal->least_bytes;
    if (more) worst = i;
  }
  const Refusal& refusal = *stages[worst].refusal;
  const std::string stage = stages.size() > 1 ? fmt::format(" on stage {}", worst) : "";
  NoPlanFits error(
      fmt::format("no plan was found for {} bytes{}: {}", budget_bytes, stage, refusal.why),
      refusal.least_bytes);
  error.hint(fmt::format("the least budget with a plan is {} bytes; a smaller batch needs less",
                         refusal.least_bytes));
  throw error;
}

std::vector<PipelineStage> stages_of(const Program& step, const OpTable& ops,
                                     const MachineModel& machine) {
  PipelineStage whole{.graph = step.graph, .workspaces = workspaces_of(step)};
  if (machine.layout.world > 1) make_rows_dense(whole.graph, ops);
  split_tensors(whole.graph, ops, machine.layout.tensor, whole.workspaces);
  std::vector<PipelineStage> stages;
  if (machine.layout.pipeline == 1) {
    stages.push_back(std::move(whole));
    return stages;
  }
  return cut_stages(whole.graph, ops, machine, whole.workspaces);
}

// The slowest stage is the one that the figures of messages are of.
void add_times(const WorldOptions& options, WorldPlan& plan) {
  std::vector<StageSeconds> stages;
  double tail = 0.0;
  const DeviceShard* slowest = &plan.stages.front();
  for (const DeviceShard& shard : plan.stages) {
    stages.push_back(shard.micro_batch);
    if (shard.micro_batch.sum() > slowest->micro_batch.sum()) slowest = &shard;
    tail = std::max(tail, shard.tail_seconds);
  }
  plan.step_seconds = slowest->time.seconds;
  if (stages.size() > 1) {
    plan.step_seconds =
        std::max(plan.step_seconds, pipeline_seconds(stages, options.micro_batches) + tail);
  }
  plan.bubble_seconds = plan.step_seconds - slowest->time.seconds;
  plan.message_seconds = slowest->time.message_seconds;
  plan.sent_bytes = slowest->time.sent_bytes;
  plan.exposed_seconds = slowest->time.seconds - slowest->time.kernel_seconds;
}

}  // namespace

std::int64_t WorldPlan::eager_bytes() const {
  return std::ranges::max(stages, {}, &DeviceShard::eager_bytes).eager_bytes;
}

std::int64_t WorldPlan::rematerialized_nodes() const {
  std::int64_t nodes = 0;
  for (const DeviceShard& stage : stages) nodes += stage.rematerialized_nodes;
  return nodes;
}

WorldPlan plan_world(const Program& step, const OpTable& ops, const WorldOptions& options) {
  const Layout& layout = options.machine.layout;
  check_layout(layout);
  WorldPlan plan{.layout = layout, .stages = {}};
  const std::vector<PipelineStage> stages = stages_of(step, ops, options.machine);
  std::vector<Device1F1B> devices;
  devices.reserve(stages.size());
  std::vector<PlannedStage> planned;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t in_flight = micro_batches_in_flight(static_cast<std::int64_t>(i),
                                                           layout.pipeline, options.micro_batches);
    planned.push_back(devices.emplace_back(stages[i], in_flight, ops, options).plan());
  }
  const auto refused = [](const PlannedStage& stage) { return stage.refusal.has_value(); };
  if (std::ranges::any_of(planned, refused)) refuse(*options.budget_bytes, planned);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    plan.stages.push_back(planned[i].shard);
    if (plan.stages[i].peak_bytes > plan.device().peak_bytes) plan.fullest = i;
    devices[i].tell(i);
  }
  add_times(options, plan);
  return plan;
}

}  // namespace trainscope
