// Round numbers along axes.
#include "gui/views/ticks.h"

#include <doctest/doctest.h>

namespace trainscope::gui {
namespace {

TEST_CASE("ticks: steps are 1, 2 or 5 times a power of ten, at most as many as asked for") {
  CHECK(round_ticks(0.0, 10.0, 5) == std::vector<double>{0.0, 2.0, 4.0, 6.0, 8.0, 10.0});
  CHECK(round_ticks(0.0, 1.0, 2) == std::vector<double>{0.0, 0.5, 1.0});
  CHECK(round_ticks(5.0, 5.0, 4).empty());
  CHECK(round_ticks(3.0, 1.0, 4).empty());
}

TEST_CASE("ticks: of bytes they are multiples of a power of two") {
  const std::vector<double> ticks = byte_ticks(0.0, 5.0 * 1024 * 1024, 6);
  REQUIRE(ticks.size() == 6);
  CHECK(ticks[1] == 1024.0 * 1024.0);
}

TEST_CASE("ticks: times have as many digits as their steps need") {
  CHECK(tick_time(2e6, 1e6) == "2 ms");
  CHECK(tick_time(2.5e6, 5e5) == "2.5 ms");
  CHECK(tick_time(0.0, 1e3) == "0 µs");
  CHECK(tick_time(1.25e9, 5e7) == "1.25 s");
}

}  // namespace
}  // namespace trainscope::gui
