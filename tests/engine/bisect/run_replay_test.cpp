// What steps begin with: elements that are not the model's, or not those of the step before.
#include "engine/bisect/run_replay.h"

#include <doctest/doctest.h>

#include "engine/core/system/scratch_folder.h"
#include "tests/engine/bisect/planting.h"

namespace trainscope::test {
namespace {

constexpr double kLimit = 1.6e-5;

// The step with another weight to begin with.
Graph moved_weight(const Subject& subject) {
  Graph graph = subject.plain.graph();
  Value& weight = graph.value(graph.find("2.weight"));
  Tensor moved = *weight.data;
  moved.values<float>()[3] += 0.25F;
  weight.data = std::make_shared<const Tensor>(std::move(moved));
  return graph;
}

}  // namespace

TEST_CASE("start: a run that begins with another weight is not replayed") {
  const Subject subject("mlp");
  for (const bool with_elements : {true, false}) {
    CAPTURE(with_elements);
    const RunReplay run =
        replayed(subject, moved_weight(subject), {.with_elements = with_elements});
    REQUIRE(run.faults.size() == 1);
    CHECK(run.faults.front().kind == FaultKind::kStart);
    CHECK(run.faults.front().key == "param:2.weight");
    CHECK(run.faults.front().step == 0);
    CHECK(run.faults.front().cause == "the run begins with other elements than the model has");
    CHECK(run.steps.empty());
    CHECK(run.judged == 0);
  }
}

// By sketches, of step 2 alone: what it began with is known of the other run.
TEST_CASE("start: a step that begins with another weight than the other run's") {
  const Subject subject("mlp");
  const ScratchFolder right;
  const ScratchFolder wrong;
  record(subject, subject.plain.graph(), {}, Folder::open(right.path()));
  record(subject, moved_weight(subject), {.with_elements = false}, Folder::open(wrong.path()));
  const profiler::IndexedTrace other(profiler::Trace::open(right.path()));
  const profiler::IndexedTrace trace(profiler::Trace::open(wrong.path()));
  const RunReplay run =
      replay_run({.step = subject.defined,
                  .trace = trace,
                  .limit_of = [](std::size_t) { return kLimit; },
                  .schedule = subject.schedule,
                  .start = [&](std::int64_t step) { return recorded_start(other, step); },
                  .steps = {2}});
  REQUIRE_FALSE(run.faults.empty());
  CHECK(run.faults.front().kind == FaultKind::kStart);
  CHECK(run.faults.front().step == 1);
  CHECK(run.faults.front().cause ==
        "the step begins with other elements than the step before left in the other run");
  CHECK(run.steps.empty());
}

}  // namespace trainscope::test
