// The chain that a step waits for, over one stream and over two.
#include "profiler/analysis/critical_path.h"

#include <doctest/doctest.h>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

StepTimes times_of(const std::vector<std::int64_t>& ns) {
  StepTimes times;
  times.steps = {{.step = 1, .begin_ns = 0, .end_ns = 1000}};
  for (const std::int64_t each : ns) times.calls.push_back({.ns = {each}, .runs = 1});
  return times;
}

TEST_CASE("critical path: on one stream it is all calls") {
  const PlanRecord plan = small_plan();
  const CriticalPath path = critical_path(times_of({10, 20, 30, 40}), view_of(plan));
  CHECK(path.ns == 100);
  CHECK(path.calls == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(path.stream_ns == std::vector<std::int64_t>{100});
}

TEST_CASE("critical path: a copy beside calls is on it only where they wait for it") {
  PlanRecord plan = small_plan();
  plan.calls[1].stream = 1;
  plan.waits.push_back(1);
  plan.calls[3].waits = {.begin = 0, .count = 1};
  const CriticalPath hidden = critical_path(times_of({10, 20, 30, 40}), view_of(plan));
  CHECK(hidden.ns == 80);
  CHECK(hidden.calls == std::vector<std::uint32_t>{0, 2, 3});
  CHECK(hidden.stream_ns == std::vector<std::int64_t>{80, 0});
  CHECK(hidden.stream_all_ns == std::vector<std::int64_t>{80, 20});
  const CriticalPath waited = critical_path(times_of({10, 90, 30, 40}), view_of(plan));
  CHECK(waited.ns == 130);
  CHECK(waited.calls == std::vector<std::uint32_t>{1, 3});
  CHECK(waited.stream_ns == std::vector<std::int64_t>{40, 90});
}

TEST_CASE("critical path: of a plan without calls it is nothing") {
  CHECK(critical_path({}, view_of(PlanRecord{})).ns == 0);
}

}  // namespace
}  // namespace trainscope::profiler::test
