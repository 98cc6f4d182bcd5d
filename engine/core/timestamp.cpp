// Points in time as text.
#include "engine/core/timestamp.h"

#include <fmt/format.h>

#include <ctime>

namespace trainscope {

std::string utc_timestamp(std::chrono::system_clock::time_point time) {
  using std::chrono::duration_cast;
  using std::chrono::floor;
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const auto whole = floor<seconds>(time);
  const auto fraction = duration_cast<milliseconds>(time - whole);
  const std::time_t clock_seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm utc{};
  gmtime_r(&clock_seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     fraction.count());
}

std::string utc_timestamp() { return utc_timestamp(std::chrono::system_clock::now()); }

}  // namespace trainscope
