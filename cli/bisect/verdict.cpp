// Replays of each run, their first faults, and which comes first.
#include "cli/bisect/verdict.h"

#include <fmt/format.h>

#include <utility>

#include "cli/bisect/fault_text.h"
#include "engine/bisect/limits.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/numerics/tensor_limits.h"

namespace trainscope {
namespace {

const LocalFault* first_of(const BisectedRun& side) {
  return side.found.faults.empty() ? nullptr : &side.found.faults.front();
}

bool is_before(const LocalFault& a, const LocalFault& b) {
  return std::pair(a.step, a.order) < std::pair(b.step, b.order);
}

// The run whose first fault comes first; null: none has one.
const BisectedRun* guilty(const std::vector<const BisectedRun*>& sides) {
  const BisectedRun* found = nullptr;
  for (const BisectedRun* side : sides) {
    const LocalFault* fault = first_of(*side);
    if (fault == nullptr) continue;
    if (found == nullptr || is_before(*fault, *first_of(*found))) found = side;
  }
  return found;
}

std::string command_for(const BisectedRun& side, const LocalFault& fault,
                        const std::string& other) {
  if (knows_model(side.folder) && fault.step > 0) {
    return fmt::format("trainscope at {} --step {} --value '{}'", side.folder, fault.step,
                       fault.key);
  }
  return other;
}

}  // namespace

void replay_side(BisectedRun& side, const DefinedStep& step, const BisectedModel& model,
                 const StartOf& start, const std::vector<std::int64_t>& steps) {
  const bool tf32 = model.compile.training.precision == StepPrecision::kTf32;
  side.found = replay_run({.step = step,
                           .trace = side.trace,
                           .limit_of =
                               [&side](std::size_t row) {
                                 const auto found = side.limits.find(row);
                                 return found == side.limits.end() ? 8 * profiler::kUnmeasuredNoise
                                                                   : found->second;
                               },
                           .schedule = model.schedule,
                           .start = start,
                           .steps = steps,
                           .rounding = tf32 ? kTf32Rounding : 0.0});
}

Outcome verdict(const std::vector<const BisectedRun*>& sides, const std::string& compare) {
  std::int64_t judged = 0;
  Json facts = Json::object();
  Json runs = Json::array();
  for (const BisectedRun* side : sides) {
    judged += side->found.judged;
    Json faults = Json::array();
    for (const LocalFault& fault : side->found.faults) faults.push_back(fault_json(fault));
    runs.push_back(Json::object({{"name", side->name},
                                 {"judged", side->found.judged},
                                 {"steps", Json::list(side->found.steps)},
                                 {"skipped", Json::list(side->found.skipped)},
                                 {"faults", std::move(faults)}}));
  }
  const BisectedRun* side = guilty(sides);
  if (judged == 0 && side == nullptr) {
    throw Error(ErrorCode::kUsage,
                "no tensor can be judged: nobody knows what the steps began with")
        .hint("record with --record-full '*', or bisect the folder of a run");
  }
  facts.set("runs", std::move(runs));
  facts.set("judged", judged);
  Outcome outcome{.facts = std::move(facts)};
  if (side == nullptr) {
    outcome.facts.set("culprit", Json());
    outcome.text = fmt::format(
        "no culprit: each of {} tensors is what its op makes of the run's own inputs\n", judged);
    return outcome;
  }
  const LocalFault& fault = *first_of(*side);
  const std::string command = command_for(*side, fault, compare);
  Json culprit = fault_json(fault);
  culprit.set("run", side->name);
  culprit.set("command", command);
  outcome.facts.set("culprit", std::move(culprit));
  outcome.text = fmt::format("culprit in {}: {}\nsee: {}\n", side->name, fault_text(fault),
                             printable(command, 400));
  outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

}  // namespace trainscope
