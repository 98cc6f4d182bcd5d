// Options of glibc's allocator.
#include "engine/core/system/freed_memory.h"

#include <cstdlib>  // __GLIBC__
#include <limits>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace trainscope {

#ifdef __GLIBC__

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
  give_back_freed_memory();
}

void give_back_freed_memory() { malloc_trim(0); }
#else
KeepsFreedMemory::KeepsFreedMemory() = default;
KeepsFreedMemory::~KeepsFreedMemory() = default;
void give_back_freed_memory() {}
#endif

}  // namespace trainscope
