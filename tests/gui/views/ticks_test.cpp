// Texts beside ticks.
#include "gui/views/ticks.h"

#include <doctest/doctest.h>

namespace trainscope::gui {
namespace {

TEST_CASE("ticks: times have as many digits as their steps need") {
  CHECK(tick_time(2e6, 1e6) == "2 ms");
  CHECK(tick_time(2.5e6, 5e5) == "2.5 ms");
  CHECK(tick_time(0.0, 1e3) == "0 µs");
  CHECK(tick_time(1.25e9, 5e7) == "1.25 s");
}

}  // namespace
}  // namespace trainscope::gui
