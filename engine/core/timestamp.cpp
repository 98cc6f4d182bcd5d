// Points in time as text.
#include "engine/core/timestamp.h"

#include <fmt/format.h>

#include <cstdio>
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

std::optional<std::chrono::system_clock::time_point> parse_timestamp(const std::string& text) {
  std::tm utc{};
  int milliseconds = 0;
  const int read =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &milliseconds);
  if (read != 7) return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  const auto time = std::chrono::system_clock::from_time_t(timegm(&utc)) +
                    std::chrono::milliseconds(milliseconds);
  if (utc_timestamp(time) != text) return std::nullopt;  // the 31st of February, or text behind it
  return time;
}

}  // namespace trainscope
