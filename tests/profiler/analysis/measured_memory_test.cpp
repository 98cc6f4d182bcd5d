// What was bound at each time, and what the process took after each step.
#include "profiler/analysis/measured_memory.h"

#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <vector>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

Event counted(EventKind kind, std::uint32_t id, double value) {
  return {.begin_ns = 0, .value = std::bit_cast<std::uint64_t>(value), .id = id, .kind = kind};
}

MeasuredMemory measured(const std::vector<Event>& events) {
  PlanRecord plan = small_plan();
  plan.facts.times = 4;
  const EventBytes bytes(events);
  return measured_memory(bytes.view(), view_of(plan));
}

using Bytes = std::vector<std::int64_t>;

TEST_CASE("measured memory: what was counted last for a time holds until the next") {
  const MeasuredMemory memory =
      measured({counted(EventKind::kBoundBytes, 0, 50.0), counted(EventKind::kBoundBytes, 0, 80.0),
                counted(EventKind::kBoundBytes, 2, 60.0)});
  CHECK(memory.bound == Bytes{80, 80, 60, 60});
  CHECK(memory.most_bound() == 80);
  CHECK(memory.resident.empty());
}

TEST_CASE("measured memory: of the process after each step, and how much more that is") {
  const MeasuredMemory memory =
      measured({counted(EventKind::kResidentBytes, 8, 900.0),
                counted(EventKind::kResidentBytes, 7, 1000.0), counted(EventKind::kLoss, 7, 2.0)});
  CHECK(memory.bound.empty());
  CHECK(memory.most_bound() == 0);
  REQUIRE(memory.resident.size() == 2);
  CHECK(memory.resident[0].step == 7);
  CHECK(memory.resident[0].more_bytes == 0);
  CHECK(memory.resident[1].bytes == 900);
  CHECK(memory.resident[1].more_bytes == -100);
  CHECK(measured({}).empty());
}

TEST_CASE("measured memory: numbers that are none, and times that the plan has not, are left out") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  std::vector<Event> events = {counted(EventKind::kBoundBytes, 4, 10.0),
                               counted(EventKind::kBoundBytes, 0xffffffffU, 10.0)};
  for (const double wrong : {nan, infinite, -infinite, -1.0, 1e300}) {
    events.push_back(counted(EventKind::kBoundBytes, 1, wrong));
    events.push_back(counted(EventKind::kResidentBytes, 1, wrong));
  }
  CHECK(measured(events).empty());
}

}  // namespace
}  // namespace trainscope::profiler::test
