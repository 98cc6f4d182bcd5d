// Plans of all divisors of a step's examples.
#include "engine/run/batch/micro_batches.h"

#include <fmt/format.h>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// Forward and backward once for each micro-batch, the update once. The plan knows what transfers
// take, the model of the machine does not.
double time_of_step(const Compiled& compiled, const Machine& machine, std::int64_t micro_batches) {
  const Program& program = compiled.program;
  const std::vector<double> times = step_seconds(program, {}, machine);
  double all = 0.0;
  double once = 0.0;
  for (NodeId id : program.graph.order()) {
    const double seconds = times[static_cast<std::size_t>(id)];
    all += seconds;
    if (program.graph.node(id).phase == Phase::kUpdate) once += seconds;
  }
  if (compiled.recompute) all = compiled.recompute->seconds;
  return once + (all - once) * static_cast<double>(micro_batches);
}

// A split without a plan within the budget.
struct Refused {
  BatchSplit split;
  std::int64_t least_bytes = 0;
};

// None when no plan fits; `refused` is then, of those so far, the one that needs least.
std::optional<SplitPlan> plan_of(const CompileSplit& compile_split, const Machine& machine,
                                 const BatchSplit& split, std::optional<Refused>& refused) {
  try {
    const std::unique_ptr<Compiled> compiled = compile_split(split);
    return SplitPlan{.arena_bytes = compiled->program.arena().bytes,
                     .seconds = time_of_step(*compiled, machine, split.micro_batches),
                     .rematerialized = compiled->recompute ? compiled->recompute->repeats : 0};
  } catch (const NoPlanFits& error) {
    if (!refused || error.least_bytes < refused->least_bytes) {
      refused = Refused{.split = split, .least_bytes = error.least_bytes};
    }
    return std::nullopt;
  }
}

[[noreturn]] void refuse_all(const Refused& least) {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("no split of {} examples has a plan within the budget: the least found "
                          "is {} bytes with --batch {} --accumulate {}",
                          least.split.examples(), least.least_bytes, least.split.batch,
                          least.split.micro_batches))
      .hint(fmt::format("--memory-budget {} or more, or fewer examples a step", least.least_bytes));
}

}  // namespace

PlannedSplits plan_splits(const CompileSplit& compile_split, const BatchSplit& asked,
                          const Machine& machine) {
  PlannedSplits splits;
  std::optional<Refused> refused;
  for (std::int64_t batch = asked.examples(); batch >= 1; --batch) {
    if (asked.examples() % batch != 0) continue;
    const BatchSplit split{.batch = batch, .micro_batches = asked.examples() / batch};
    splits.all.push_back({.split = split, .plan = plan_of(compile_split, machine, split, refused)});
    const PlannedSplit& planned = splits.all.back();
    if (!planned.plan) continue;
    const std::optional<SplitPlan>& best = splits.quickest.plan;
    if (!best || planned.plan->seconds < best->seconds) splits.quickest = planned;
  }
  if (!splits.quickest.plan) refuse_all(*refused);
  return splits;
}

}  // namespace trainscope
