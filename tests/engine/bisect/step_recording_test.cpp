// A step that is recorded by itself, from what the step before left.
#include "engine/bisect/step_recording.h"

#include <doctest/doctest.h>

#include "engine/bisect/step_start.h"
#include "engine/core/system/scratch_folder.h"
#include "tests/engine/bisect/planting.h"

namespace trainscope::test {

TEST_CASE("recording: a step from what it began with is that of the run") {
  const Subject subject("mlp");
  const ScratchFolder whole;
  record(subject, subject.plain.graph(), {.steps = 2}, Folder::open(whole.path()));
  const profiler::IndexedTrace run(profiler::Trace::open(whole.path()));
  const std::optional<StepStart> start = recorded_start(run, 2);
  REQUIRE(start.has_value());
  const ScratchFolder alone;
  record_steps({.step = subject.plain,
                .graph = subject.plain.graph(),
                .evaluate = subject.plain.evaluate(),
                .schedule = subject.schedule,
                .first = 2,
                .kept = start->kept},
               {start->batches.front()}, {.producer = "test", .version = "1", .mode = "all"},
               Folder::open(alone.path()));
  const profiler::IndexedTrace second(profiler::Trace::open(alone.path()));
  std::size_t rows = 0;
  for (const profiler::TraceRow& row : run.trace().rows()) {
    const bool begins = row.kind == profiler::TraceKind::kParameter && row.step == 1;
    if (row.step != 2 && !begins) continue;
    CAPTURE(row.key());
    const auto same = second.find(row.step, 0, row.key());
    REQUIRE(same.has_value());
    CHECK(second.row(*same).hash == row.hash);
    ++rows;
  }
  CHECK(rows > 20);
}

}  // namespace trainscope::test
