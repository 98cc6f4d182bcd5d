// Sums of the spans of any range, as far as they are in it.
#include "profiler/analysis/range_times.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

RangeTimes small_range(std::int64_t begin, std::int64_t end, GroupBy by) {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  return range_times(bytes.view(), view_of(plan), begin, end, by);
}

TEST_CASE("range times: calls, copies and waits of the driving thread, the longest first") {
  const RangeTimes times = small_range(1000, 2000, GroupBy::kOp);
  CHECK(times.range_ns == 1000);
  CHECK(times.spans_ns == 90 + 80 + 500 + 50 + 30);
  REQUIRE(times.rows.size() == 4);
  CHECK(times.rows[0].name == "MatMul");
  CHECK(times.rows[0].ns == 590);
  CHECK(times.rows[0].spans == 2);
  CHECK(times.share(times.rows[0]) == doctest::Approx(0.59));
  CHECK(times.rows[1].name == "Gelu");
  CHECK(times.rows[1].is_call);
  CHECK(times.rows[2].name == "batch wait");
  CHECK_FALSE(times.rows[2].is_call);
  CHECK(times.rows[3].name == "bind");
}

TEST_CASE("range times: a wait for other ranks is a row, what surrounds copies is none") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(events_of_a_rank());
  const RangeTimes times = range_times(bytes.view(), view_of(plan), 1000, 1640, GroupBy::kOp);
  REQUIRE(times.rows.size() == 4);
  CHECK(times.rows[0].name == "MatMul");
  CHECK(times.rows[1].name == "rank wait");
  CHECK(times.rows[1].ns == 100);
  CHECK(times.rows[2].name == "bind");
  CHECK(times.rows[3].name == "batch wait");
  CHECK(times.range_ns - times.spans_ns == 640 - 420 - 100 - 20 - 10);
}

TEST_CASE("range times: a range may begin and end within spans, and be empty") {
  const RangeTimes times = small_range(1150, 1230, GroupBy::kNode);
  REQUIRE(times.rows.size() == 2);
  CHECK(times.rows[0].ns == 50);
  CHECK(times.rows[1].ns == 10);
  for (const RangeTimes& empty :
       {small_range(1150, 1150, GroupBy::kOp), small_range(1150, 1000, GroupBy::kOp)}) {
    CHECK(empty.rows.empty());
    CHECK(empty.range_ns == 0);
    CHECK(empty.share(RangeRow{.ns = 5}) == 0.0);
  }
}

// Step 6 ends at 2000, the next one begins at 2100.
TEST_CASE("range times: what lies between windows of steps is no part of a range") {
  const PlanRecord plan = small_plan();
  for (const std::uint32_t next : {7U, 9U}) {
    std::vector<Event> events = small_events();
    for (Event& event : events) {
      if (event.kind == EventKind::kStep && event.id == 7) event.id = next;
    }
    const EventBytes bytes(events);
    const auto range_ns = [&](std::int64_t begin, std::int64_t end) {
      return range_times(bytes.view(), view_of(plan), begin, end, GroupBy::kOp).range_ns;
    };
    const std::int64_t gap = next == 7 ? 0 : 100;
    CHECK(range_ns(1000, 2900) == 1900 - gap);
    CHECK(range_ns(1950, 2050) == 100 - gap / 2);
    CHECK(range_ns(2020, 2040) == 20 - gap / 5);
    CHECK(range_ns(1000, 2000) == 1000);
    CHECK(range_ns(2100, 2900) == 800);
    CHECK(range_ns(2900, 3000) == 100);
  }
}

}  // namespace
}  // namespace trainscope::profiler::test
