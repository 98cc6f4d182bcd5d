// Tests of points in time as text.
#include "engine/core/timestamp.h"

#include <doctest/doctest.h>

namespace trainscope {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

std::string text_at(std::int64_t since_epoch_ms) {
  return utc_timestamp(system_clock::time_point(milliseconds(since_epoch_ms)));
}

TEST_CASE("utc_timestamp: ISO 8601 with milliseconds") {
  CHECK(text_at(0) == "1970-01-01T00:00:00.000Z");
  CHECK(text_at(951'782'400'125) == "2000-02-29T00:00:00.125Z");
  CHECK(text_at(-1) == "1969-12-31T23:59:59.999Z");
}

TEST_CASE("utc_timestamp: now is between two readings of the clock") {
  const std::string before = utc_timestamp(system_clock::now());
  const std::string now = utc_timestamp();
  const std::string after = utc_timestamp(system_clock::now());
  CHECK(before <= now);
  CHECK(now <= after);
}

TEST_CASE("parse_timestamp: the inverse, and nothing for other text") {
  for (std::int64_t ms : {std::int64_t{0}, std::int64_t{951'782'400'125}, std::int64_t{-1}}) {
    CHECK(parse_timestamp(text_at(ms)) == system_clock::time_point(milliseconds(ms)));
  }
  for (const char* text : {"", "now", "2026-02-31T00:00:00.000Z", "2026-02-01T24:00:00.000Z",
                           "2026-02-01T00:00:00.000", "2026-02-01T00:00:00.000Z!",
                           "2026-2-01T00:00:00.000Z", "2026-02-01 00:00:00.000Z"}) {
    INFO(text);
    CHECK(!parse_timestamp(text).has_value());
  }
}

}  // namespace
}  // namespace trainscope
