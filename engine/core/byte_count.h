// Bytes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainscope {

// "6GiB" as a number of bytes, 1 or more; none for what is no such number.
std::optional<std::int64_t> find_bytes(std::string_view text);

// human_bytes() of a number that may be negative: "1.5 MiB", "-512 B".
std::string bytes_text(std::int64_t bytes);

}  // namespace trainscope
