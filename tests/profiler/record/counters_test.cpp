// Counters of the system and of the processor.
#include <doctest/doctest.h>

#include <vector>

#include "profiler/record/hardware_counters.h"
#include "profiler/record/system_counters.h"

namespace trainscope::profiler {
namespace {

TEST_CASE("system counters: fresh pages are faults, and work takes processor time") {
  const SystemCounters before = read_system_counters();
  std::vector<char> pages(std::size_t{8} << 20);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < pages.size(); i += 4096) sum += static_cast<std::uint64_t>(pages[i]);
  CHECK(sum == 0);
  const SystemCounters after = read_system_counters();
  CHECK(after.minor_faults > before.minor_faults);
  CHECK(after.task_clock_ns > before.task_clock_ns);
  CHECK(after.resident_bytes > std::int64_t{8} << 20);
  CHECK(after.voluntary_switches >= before.voluntary_switches);
}

TEST_CASE("hardware counters: a group is decoded, scaled by the share of time that it ran") {
  const std::vector<std::uint64_t> words = {4, 1000, 500, 10, 20, 30, 40};
  const auto values = decode_counters(words);
  REQUIRE(values.has_value());
  CHECK(*values == HardwareValues{20.0, 40.0, 60.0, 80.0});
  CHECK(!decode_counters(std::vector<std::uint64_t>{4, 1000, 0, 0, 0, 0, 0}));     // never ran
  CHECK(!decode_counters(std::vector<std::uint64_t>{3, 1000, 1000, 1, 2, 3, 4}));  // another group
  CHECK(!decode_counters(std::vector<std::uint64_t>{4, 1000, 1000, 1, 2, 3}));     // cut short
  CHECK(!decode_counters({}));
}

TEST_CASE("hardware counters: they are open and count, or it is said why not") {
  const HardwareCounters counters;
  CHECK(counters.are_open() == counters.why_not().empty());
  CHECK((counters.are_open() || !counters.read().has_value()));
}

}  // namespace
}  // namespace trainscope::profiler
