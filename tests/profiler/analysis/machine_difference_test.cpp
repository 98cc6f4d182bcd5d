// What runs measured of their machines, and when two of them were alike.
#include "profiler/analysis/machine_difference.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler {
namespace {

Event speed(EventKind kind, std::int64_t at_ns, double value) {
  return {.begin_ns = at_ns, .value = std::bit_cast<std::uint64_t>(value), .id = 1, .kind = kind};
}

TEST_CASE("machine: the best of a run's measurements, and the usual exchange") {
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) {
    events.push_back(speed(EventKind::kClockSpeed, i, 700.0 - i));
    events.push_back(speed(EventKind::kExchangeSpeed, i, i < 2 ? 120.0 + i : 60.0 + i));
  }
  const test::EventBytes file(events);
  const RunMachine machine = machine_of(file.view());
  CHECK(machine.clock == 700.0);
  CHECK(machine.exchange == 121.0);
  CHECK(machine.usual_exchange == 64.0);
  const test::EventBytes none(std::vector<Event>{speed(EventKind::kLoss, 0, 2.0)});
  CHECK(machine_of(none.view()).exchange == 0.0);
}

TEST_CASE("machine: within eight percent two are alike, in every speed") {
  const std::vector<RunMachine> a = {{.clock = 700, .exchange = 120, .usual_exchange = 118}};
  const auto against = [&](const RunMachine& b) {
    return machine_difference(a, std::vector<RunMachine>{b});
  };
  CHECK(against({.clock = 720, .exchange = 115, .usual_exchange = 112}).is_alike());
  CHECK(against({.clock = 720, .exchange = 115, .usual_exchange = 112}).most() == 1.0);
  const MachineDifference moved = against({.clock = 700, .exchange = 60, .usual_exchange = 59});
  CHECK_FALSE(moved.is_alike());
  CHECK(moved.exchange == doctest::Approx(2.0));
  CHECK(moved.most() == doctest::Approx(2.0));
  CHECK_FALSE(against({.clock = 700, .exchange = 240, .usual_exchange = 240}).is_alike());
  CHECK(against({.clock = 700, .exchange = 240, .usual_exchange = 240}).most() == 1.0);
  CHECK_FALSE(against({.clock = 600, .exchange = 120, .usual_exchange = 118}).is_alike());
  // The best of both was the same, most of the time it was not.
  CHECK_FALSE(against({.clock = 700, .exchange = 120, .usual_exchange = 60}).is_alike());
}

TEST_CASE("machine: a run that measured nothing is not said to differ") {
  const std::vector<RunMachine> a = {{.clock = 700, .exchange = 120, .usual_exchange = 118}};
  const MachineDifference both = machine_difference(a, std::vector<RunMachine>{{}});
  CHECK_FALSE(both.is_measured);
  CHECK(both.is_alike());
  CHECK_FALSE(machine_difference({}, {}).is_measured);
  CHECK(machine_difference(a, a).is_measured);
}

}  // namespace
}  // namespace trainscope::profiler
