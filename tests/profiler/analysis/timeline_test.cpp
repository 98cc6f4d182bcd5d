// Steps as pieces: they add up, and agree with the division that query makes.
#include "profiler/analysis/timeline.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "engine/core/error.h"
#include "profiler/analysis/step_times.h"
#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

TEST_CASE("timeline: pieces are side by side, and calls have what the breakdown gives them") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const std::vector<TimelinePiece> pieces = timeline(bytes.view(), view_of(plan));
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  std::map<std::uint32_t, std::int64_t> by_call;
  std::map<std::uint32_t, std::int64_t> by_step;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    by_call[pieces[i].call] += pieces[i].ns();
    by_step[pieces[i].step] += pieces[i].ns();
    CHECK(pieces[i].ns() > 0);
    if (i > 0 && pieces[i].step == pieces[i - 1].step) {
      CHECK(pieces[i].begin_ns == pieces[i - 1].end_ns);
    }
  }
  CHECK(by_step == std::map<std::uint32_t, std::int64_t>{{6, 1000}, {7, 800}});
  for (const std::uint32_t call : {0U, 1U, 3U}) CHECK(by_call[call] == times.calls[call].sum());
}

TEST_CASE("timeline: inputs, results and a wait for other ranks are pieces of their own") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(events_of_a_rank());
  std::map<EventKind, std::int64_t> ns;
  for (const TimelinePiece& piece : timeline(bytes.view(), view_of(plan))) {
    ns[piece.kind] += piece.ns();
  }
  using enum EventKind;
  CHECK(ns == std::map<EventKind, std::int64_t>{{kStep, 55},
                                                {kStepPart, 45},
                                                {kBatchWait, 10},
                                                {kBind, 20},
                                                {kCall, 420},
                                                {kInputs, 20 + 10},
                                                {kResults, 20 + 10 + 90},
                                                {kRankWait, 300}});
}

TEST_CASE("timeline: a path leads from the phase to the kernel; other time has a name") {
  const PlanRecord plan = small_plan();
  const PlanView view = view_of(plan);
  CHECK(path_of(view, {.call = 3, .kind = EventKind::kCall}) ==
        std::vector<std::string>{"backward", "/fc", "/fc/MatMul", "MatMul", "gemm"});
  CHECK(path_of(view, {.kind = EventKind::kBatchWait}) == std::vector<std::string>{"(batch wait)"});
}

TEST_CASE("timeline: spans that do not nest, and calls of another plan, are refused") {
  const PlanRecord plan = small_plan();
  const EventBytes crossed({span_of(EventKind::kStep, 1, 0, 100),
                            span_of(EventKind::kCall, 0, 10, 50),
                            span_of(EventKind::kCall, 1, 40, 60)});
  CHECK_THROWS_AS(timeline(crossed.view(), view_of(plan)), Error);
  const EventBytes foreign(
      {span_of(EventKind::kStep, 1, 0, 100), span_of(EventKind::kCall, 99, 10, 50)});
  CHECK_THROWS_AS(timeline(foreign.view(), view_of(plan)), Error);
}

}  // namespace
}  // namespace trainscope::profiler::test
