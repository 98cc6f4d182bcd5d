// The clock of events: its order, and ticks as nanoseconds.
#include "profiler/record/clock.h"

#include <doctest/doctest.h>

namespace trainscope::profiler {
namespace {

TEST_CASE("clock: ticks of both sources go forward, and pairs agree with the system's clock") {
  for (const TickSource source : {best_tick_source(), TickSource::kMonotonicClock}) {
    const Clock clock(source);
    const std::int64_t before = Clock::monotonic_ns();
    const ClockPair first = clock.pair();
    const ClockPair second = clock.pair();
    const std::int64_t after = Clock::monotonic_ns();
    CHECK(before <= first.ns);
    CHECK(first.ns <= second.ns);
    CHECK(second.ns <= after);
    CHECK(first.ticks < second.ticks);
  }
}

TEST_CASE("clock: a later pair bends the line after it alone") {
  TickMap map({.ticks = 1000, .ns = 5'000'000});
  CHECK(map.ns(1007) == 7);                         // one pair: ticks are nanoseconds
  map.add({.ticks = 3'001'000, .ns = 15'000'000});  // 10 ms in 3 M ticks
  CHECK(map.ns(1000) == 0);
  CHECK(map.ns(1'501'000) == 5'000'000);
  CHECK(map.ns(6'001'000) == 20'000'000);           // beyond the last pair the line goes on
  CHECK(map.ns(700) == -1'000);                     // ... and before the first
  map.add({.ticks = 3'001'600, .ns = 15'001'000});  // too near: left out
  map.add({.ticks = 6'001'000, .ns = 45'000'000});  // 30 ms in 3 M ticks
  CHECK(map.ns(1'501'000) == 5'000'000);
  CHECK(map.ns(3'001'000) == 10'000'000);
  CHECK(map.ns(4'501'000) == 25'000'000);
  CHECK(map.ns(6'001'000) == 40'000'000);
  std::int64_t last = map.ns(0);
  for (std::uint64_t ticks = 1; ticks < 7'000'000; ticks += 997) {
    CHECK_MESSAGE(map.ns(ticks) >= last, ticks);
    last = map.ns(ticks);
  }
}

TEST_CASE("clock: what a thread reads does not go back where its processor's counter does") {
  std::uint64_t last = 0;
  CHECK(in_order(100, last) == 100);
  CHECK(in_order(97, last) == 100);
  CHECK(in_order(100, last) == 100);
  CHECK(in_order(140, last) == 140);
}

}  // namespace
}  // namespace trainscope::profiler
