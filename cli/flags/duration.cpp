// Reads spans of time: numbers, each with its unit.
#include "cli/flags/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr double kMostSeconds = 10.0 * 366 * 24 * 3600;

struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr TimeUnit kTimeUnits[] = {{"ms", 1e-3}, {"s", 1},    {"sec", 1},   {"m", 60},
                                   {"min", 60},  {"h", 3600}, {"d", 86'400}};

std::optional<double> unit_seconds(std::string_view name) {
  for (const TimeUnit& unit : kTimeUnits) {
    if (unit.name == name) return unit.seconds;
  }
  return std::nullopt;
}

// 0 for what is no span of time.
double seconds_in(std::string_view text) {
  if (const std::optional<double> plain = parse_number(text)) return *plain;
  constexpr std::string_view kDigits = "0123456789.";
  double seconds = 0.0;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
    const std::size_t end = std::min(text.find_first_of(kDigits, digits), text.size());
    const std::optional<double> number = parse_number(text.substr(0, digits));
    const std::optional<double> unit = unit_seconds(text.substr(digits, end - digits));
    if (!number || !unit) return 0.0;
    seconds += *number * *unit;
    text.remove_prefix(end);
  }
  return seconds;
}

}  // namespace

std::chrono::duration<double> parse_duration(std::string_view flag, std::string_view text) {
  const double seconds = seconds_in(text);
  if (seconds > 0.0 && seconds <= kMostSeconds) return std::chrono::duration<double>(seconds);
  throw Error(ErrorCode::kUsage,
              fmt::format("--{} is '{}': expected a span of time above 0, of 10 years at most",
                          flag, printable(text)))
      .hint("for example 90s, 30min or 1h30m");
}

}  // namespace trainscope
