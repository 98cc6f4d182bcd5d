// Which of two runs is to blame, where both have faults or none could be replayed.
#include "cli/bisect/verdict.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

BisectedRun run_with(const std::string& name, std::vector<LocalFault> faults,
                     std::int64_t judged = 1) {
  const std::string folder =
      std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/mlp-trainscope";
  BisectedRun run{.name = name,
                  .folder = folder,
                  .trace = profiler::IndexedTrace(profiler::Trace::open(folder))};
  run.found.faults = std::move(faults);
  run.found.judged = judged;
  return run;
}

std::string blamed(const BisectedRun& a, const BisectedRun& b) {
  const Outcome outcome = verdict({&a, &b}, "compare");
  CHECK(outcome.exit_code == 9);
  return outcome.facts.at("culprit").at("run").as_string();
}

}  // namespace

TEST_CASE("verdict: the fault that came first is blamed, whichever run has it") {
  using profiler::TracePhase;
  const LocalFault backward{
      .step = 1, .micro_batch = 0, .phase = TracePhase::kBackward, .key = "dact:x", .order = 40};
  const LocalFault later_forward{
      .step = 1, .micro_batch = 1, .phase = TracePhase::kForward, .key = "act:x", .order = 60};
  const LocalFault earlier{.step = 1, .phase = TracePhase::kBackward, .key = "dact:y", .order = 39};
  const LocalFault next_step{.step = 2, .key = "act:x", .order = 1};
  const auto both = [](const LocalFault& in_a, const LocalFault& in_b) {
    return blamed(run_with("A", {in_a}), run_with("B", {in_b}));
  };
  CHECK(both(later_forward, backward) == "B");
  CHECK(both(backward, later_forward) == "A");
  CHECK(both(backward, earlier) == "B");
  CHECK(both(next_step, backward) == "B");
  CHECK(blamed(run_with("A", {}), run_with("B", {next_step})) == "B");
}

TEST_CASE("verdict: other parameters to begin with are a fault though nothing was replayed") {
  const LocalFault start{
      .kind = FaultKind::kStart, .step = 0, .key = "param:w", .cause = "begins otherwise"};
  CHECK(blamed(run_with("A", {}, 0), run_with("B", {start}, 0)) == "B");
  const BisectedRun a = run_with("A", {}, 0);
  CHECK_THROWS_AS(verdict({&a}, "compare"), Error);
}

}  // namespace trainscope::test
