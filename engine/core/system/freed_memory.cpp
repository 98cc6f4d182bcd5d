// Options of glibc's allocator.
#include "engine/core/system/freed_memory.h"

#include <malloc.h>

#include <limits>

namespace trainscope {

// As glibc has them, but for the threshold, which it raises by itself up to this where a program
// frees large blocks.
constexpr int kMostMappedBlocks = 65536;
constexpr int kMostTrimThreshold = 64 << 20;

KeepsFreedMemory::KeepsFreedMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

KeepsFreedMemory::~KeepsFreedMemory() {
  mallopt(M_MMAP_MAX, kMostMappedBlocks);
  mallopt(M_TRIM_THRESHOLD, kMostTrimThreshold);
  malloc_trim(0);
}

}  // namespace trainscope
