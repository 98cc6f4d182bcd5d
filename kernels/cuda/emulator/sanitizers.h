// What the address sanitizer must be told of fibers and of shared memory; nothing without it.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace trainscope::cuda::emulator {

struct SanitizerStack {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake = nullptr;  // the sanitizer's own frames of it
};

// Before the stack pointer changes: `save` keeps what leaves, null where it ends.
inline void start_switch([[maybe_unused]] void** save, [[maybe_unused]] const SanitizerStack& to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(save, to.bottom, to.bytes);
#endif
}

// After it: `fake` is what came back, `from` is told which stack was left.
inline void finish_switch([[maybe_unused]] void* fake, [[maybe_unused]] SanitizerStack* from) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, from == nullptr ? nullptr : &from->bottom,
                                  from == nullptr ? nullptr : &from->bytes);
#endif
}

// Nobody may touch these bytes.
inline void poison([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(data, bytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace trainscope::cuda::emulator
