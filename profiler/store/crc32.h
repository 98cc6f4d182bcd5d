// CRC-32 as in zlib, gzip and PNG, so that other programs can check what is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainscope::profiler {

// Of `bytes` after others whose CRC is `before`.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace trainscope::profiler
