// Points in time as text.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace trainscope {

// UTC as ISO 8601 with milliseconds: "2026-11-21T09:30:00.125Z".
std::string utc_timestamp(std::chrono::system_clock::time_point time);
// The same for now.
std::string utc_timestamp();

// Back from that text; nothing for any other.
std::optional<std::chrono::system_clock::time_point> parse_timestamp(const std::string& text);

}  // namespace trainscope
