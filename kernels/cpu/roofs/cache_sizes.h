// The sizes of the processor's caches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace trainscope::cpu {

// A cache of data.
struct CacheLevel {
  int level = 1;
  std::int64_t bytes = 0;
};

// Of the first core, the smallest level first, as Linux tells below `folder`; where it does not,
// L1 and L2 of a usual size and no other.
std::vector<CacheLevel> cache_sizes(
    const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace trainscope::cpu
