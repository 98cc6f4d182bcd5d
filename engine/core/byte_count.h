// Bytes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainscope {

// "6GiB" as a number of bytes, 1 or more; none for what is no such number.
std::optional<std::int64_t> find_bytes(std::string_view text);

}  // namespace trainscope
