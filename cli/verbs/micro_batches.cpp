// Plans of all divisors of a step's examples.
#include "cli/verbs/micro_batches.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

struct Row {
  BatchSplit split;
  std::int64_t arena_bytes = 0;
  double seconds = 0.0;             // of a whole step
  std::int64_t rematerialized = 0;  // nodes that run a second time
};

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
std::optional<Row> row_of(const CompileSplit& compile_split, const Machine& machine,
                          const BatchSplit& split, std::optional<Refused>& refused) {
  try {
    const std::unique_ptr<Compiled> compiled = compile_split(split);
    return Row{.split = split,
               .arena_bytes = compiled->program.arena().bytes,
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

Json row_json(const Row& row) {
  return Json::object({{"batch", row.split.batch},
                       {"accumulate", row.split.micro_batches},
                       {"arena_bytes", row.arena_bytes},
                       {"seconds", row.seconds},
                       {"repeats", row.rematerialized}});
}

}  // namespace

Outcome plan_micro_batches(const CompileSplit& compile_split, const BatchSplit& asked,
                           const Machine& machine) {
  Outcome outcome{.facts = Json::object({{"examples", asked.examples()}})};
  outcome.text = fmt::format("{:>8} {:>12} {:>16} {:>12} {:>10} {:>12}\n", "--batch",
                             "--accumulate", "arena bytes", "", "recomputed", "ms a step");
  Json rows = Json::array();
  std::optional<Row> best;
  std::optional<Refused> refused;
  for (std::int64_t batch = asked.examples(); batch >= 1; --batch) {
    if (asked.examples() % batch != 0) continue;
    const BatchSplit split{.batch = batch, .micro_batches = asked.examples() / batch};
    const std::optional<Row> row = row_of(compile_split, machine, split, refused);
    if (!row) {
      outcome.text += fmt::format("{:>8} {:>12} {:>16}\n", batch, split.micro_batches, "too much");
      continue;
    }
    rows.push_back(row_json(*row));
    outcome.text +=
        fmt::format("{:>8} {:>12} {:>16} {:>12} {:>10} {:>12.3f}\n", batch, split.micro_batches,
                    row->arena_bytes, human_bytes(static_cast<std::uint64_t>(row->arena_bytes)),
                    row->rematerialized, 1e3 * row->seconds);
    if (!best || row->seconds < best->seconds) best = row;
  }
  if (!best) refuse_all(*refused);
  outcome.text += fmt::format("quickest: --batch {} --accumulate {}\n", best->split.batch,
                              best->split.micro_batches);
  outcome.facts.set("splits", std::move(rows));
  outcome.facts.set("quickest", row_json(*best));
  return outcome;
}

}  // namespace trainscope
