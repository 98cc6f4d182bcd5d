// Steps of correct programs, however they are compiled, have no call at fault.
#include "engine/bisect/program/program_check.h"

#include <doctest/doctest.h>

#include <functional>

#include "engine/bisect/program/program_bisect.h"
#include "tests/engine/bisect/program/step_inputs.h"

namespace trainscope::test {
namespace {

using Configure = std::function<void(CompileOptions&)>;

ProgramCheck checked(const ReferenceModel& reference, const Configure& configure) {
  CompileOptions options = reference.options(GraphMode::kTrain);
  configure(options);
  const std::shared_ptr<const Compiled> step = compile(reference.model, options);
  return check_program({step, &step->program}, graph_before_program_stages(step->stages),
                       first_step_of(reference));
}

void check_silent(const ReferenceModel& reference, const Configure& configure) {
  const ProgramCheck found = checked(reference, configure);
  for (const CallFault& fault : found.faults) {
    FAIL_CHECK(name_of(fault.kind)
               << " " << fault.op << " " << fault.node << " " << fault.value << " by "
               << fault.kernel << " call " << static_cast<int>(fault.call) << " tile " << fault.tile
               << ": " << fault.error << ", limit " << fault.limit);
  }
  CHECK(found.calls >= 15);
  CHECK(found.reads >= found.calls);
  CHECK(found.results >= 15);
  CHECK(found.unjudged == 0);
  MESSAGE(found.calls, " calls, ", found.reads, " reads, ", found.results, " results, nearest ",
          found.most_of, " at ", found.most);
}

void by_batch_tiles(CompileOptions& options) {
  options.lower.threads = 2;
  options.batch_tiles = BatchTileOptions{};
}

}  // namespace

TEST_CASE("program check: all models as they are compiled, and by their parts") {
  const std::pair<std::string, Configure> ways[] = {
      {"as it comes", [](CompileOptions&) {}},
      {"two threads, batch tiles", by_batch_tiles},
      {"recompute",
       [](CompileOptions& options) { options.recompute.mode = RecomputeMode::kLevel2; }},
      {"micro-batches", [](CompileOptions& options) { options.training.micro_batches = 2; }},
  };
  for (const std::string& name : kReferenceModels) {
    const ReferenceModel reference(name);
    for (const auto& [way, configure] : ways) {
      INFO(name, ", ", way);
      check_silent(reference, configure);
    }
  }
}

TEST_CASE("program check: an optimizer in the backward phase, and offloaded values") {
  const ReferenceModel reference("gpt2");
  check_silent(reference, [](CompileOptions& options) {
    options.training.optimizer.clip_norm = 0.0;
    options.training.optimizer.in_backward = true;
  });
  const std::int64_t plain =
      compile(reference.model, reference.options(GraphMode::kTrain))->program.arena().bytes;
  check_silent(reference, [&](CompileOptions& options) {
    options.recompute.mode = RecomputeMode::kAuto;
    options.recompute.budget_bytes = plain * 9 / 10;
    options.recompute.link = HostLink{.bytes_per_second = 1e12};
  });
}

}  // namespace trainscope::test
