// Fixes the thresholds of malloc, which otherwise rise with what is freed, and its arenas.
#include "gui/platform/process_memory.h"

#include <cstdlib>  // says whether this is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace trainscope::gui {

void keep_process_small() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 20;  // bytes: such a block is mapped by itself
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
  ::mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace trainscope::gui
