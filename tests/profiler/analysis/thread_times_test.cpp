// What threads are at: their times add up to the steps, and idle time has a cause.
#include "profiler/analysis/thread_times.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

TEST_CASE("thread times: of each thread all of the steps, each moment once") {
  const PlanRecord plan = small_plan();
  std::vector<Event> events = small_events();
  using enum EventKind;
  // The second thread has nothing to do during call 3 of the first step, and the copy before.
  events.insert(events.begin() + 11, on_thread(1, span_of(kIdle, 1, 1350, 2000)));
  events.insert(events.begin() + 11, on_thread(1, span_of(kIdle, 1, 1070, 1125)));
  const EventBytes bytes(events);
  const ThreadTimes times = thread_times(bytes.view(), view_of(plan));
  REQUIRE(times.threads.size() == 2);
  CHECK(times.steps == 2);
  CHECK(times.total_ns == 1800);
  for (const ThreadTime& each : times.threads) {
    CHECK(std::accumulate(each.ns.begin(), each.ns.end(), std::int64_t{0}) == 1800);
  }
  const ThreadTime& driver = times.threads[0];
  // Calls of 90 + 80 + 500 and 200 + 70 + 400, without what they start and wait for.
  CHECK(driver.of(ThreadUse::kWork) == 1340 - 5 - 20);
  CHECK(driver.of(ThreadUse::kStart) == 5);
  CHECK(driver.of(ThreadUse::kJoin) == 20 + 60 + 25);  // of the region, and of both sections
  CHECK(driver.of(ThreadUse::kCopy) == 30 + 10);
  CHECK(driver.of(ThreadUse::kData) == 50 + 10);
  CHECK(driver.of(ThreadUse::kDispatch) == 75 + 75);  // between the calls of both parts
  CHECK(driver.of(ThreadUse::kUnnamed) == 115 + 10);
  const ThreadTime& other = times.threads[1];
  CHECK(other.of(ThreadUse::kWork) == 55 + 130 + 80);
  CHECK(other.of(ThreadUse::kIdle) == 650 + 55);
  CHECK(times.balance() == doctest::Approx((1315.0 + 265.0) / (2 * 1315.0)));
  std::int64_t idle = 0;
  for (const IdleCause& each : times.idle) idle += each.ns;
  CHECK(idle == 705);
  REQUIRE(!times.idle.empty());
  CHECK(times.idle[0].name == "MatMul");  // call 3, and 15 of call 0
  CHECK(times.idle[0].ns == 500 + 15);
}

TEST_CASE("thread times: inputs, results and a wait for other ranks") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(events_of_a_rank());
  const ThreadTime driver = thread_times(bytes.view(), view_of(plan)).threads[0];
  CHECK(driver.of(ThreadUse::kWork) == 420);
  CHECK(driver.of(ThreadUse::kCopy) == 20 + 30 + 30 + 90);
  CHECK(driver.of(ThreadUse::kData) == 10);
  CHECK(driver.of(ThreadUse::kJoin) == 300);
  CHECK(driver.of(ThreadUse::kDispatch) == 5 + 10 + 20 + 10);
  CHECK(driver.of(ThreadUse::kUnnamed) == 55);
}

// A stream of a device on which nodes of a graph run side by side has further threads, which nobody
// knows of when the file begins.
TEST_CASE("thread times: every thread that has a span is there") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes({span_of(EventKind::kStep, 1, 0, 100),
                          on_thread(1, span_of(EventKind::kCall, 0, 10, 30)),
                          on_thread(4, span_of(EventKind::kCall, 1, 20, 90))});
  const ThreadTimes times = thread_times(bytes.view(), view_of(plan));
  REQUIRE(times.threads.size() == 5);
  CHECK(times.threads[1].of(ThreadUse::kWork) == 20);
  CHECK(times.threads[4].of(ThreadUse::kWork) == 70);
  CHECK(times.threads[4].of(ThreadUse::kUnnamed) == 30);
}

TEST_CASE("thread times: without a step there is nothing, and threads are balanced") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes({});
  const ThreadTimes times = thread_times(bytes.view(), view_of(plan));
  CHECK(times.steps == 0);
  CHECK(times.balance() == 1.0);
}

}  // namespace
}  // namespace trainscope::profiler::test
