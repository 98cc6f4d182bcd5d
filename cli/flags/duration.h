// Spans of time on a command line.
#pragma once

#include <chrono>
#include <string_view>

namespace trainscope {

// "90s", "2.5min", "1h30m", "500ms", or seconds without a unit; more than 0, at most 10 years.
// Throws kUsage naming the flag.
std::chrono::duration<double> parse_duration(std::string_view flag, std::string_view text);

}  // namespace trainscope
