// Counters of the system and of the processor.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
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

TEST_CASE(
    "stolen time: the eighth number of all processors' line, and nothing where it is not there") {
  CHECK(stolen_ticks("cpu  475803 1 27707 227999 1177 0 182 571 0 0\ncpu0 1 2 3 4 5 6 7 8 9\n") ==
        571);
  CHECK(stolen_ticks("cpu 1 2 3 4 5 6 7 8") == 8);
  for (const std::string_view other :
       {"", "cpu", "cpu ", "cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8 9\n",
        "cpu  1 2 3 x 5 6 7 8\n", "cpu  1 2 3 4 5 6 7 -8\n",
        "cpu  1 2 3 4 5 6 7 99999999999999999999\n"}) {
    CAPTURE(other);
    CHECK_FALSE(stolen_ticks(other).has_value());
  }
}

TEST_CASE("stolen time: what was added since the last reading, at most once in a tick") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("stat-" + std::to_string(::getpid()))).string();
  const auto write = [&path](std::string_view text) { std::ofstream(path) << text; };
  const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  StolenTime stolen(path.c_str());
  write("cpu  9 9 9 9 9 9 9 100 0 0\n");
  CHECK_FALSE(stolen.since_last(tick).has_value());  // the first one
  write("cpu  9 9 9 9 9 9 9 103 0 0\n");
  CHECK_FALSE(stolen.since_last(2 * tick - 1).has_value());
  CHECK(stolen.since_last(2 * tick) == 3 * tick);
  CHECK(stolen.since_last(3 * tick) == 0);
  write("cpu  9 9 9 9\n");
  CHECK_FALSE(stolen.since_last(4 * tick).has_value());
  std::filesystem::remove(path);
  CHECK_FALSE(stolen.since_last(5 * tick).has_value());
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
