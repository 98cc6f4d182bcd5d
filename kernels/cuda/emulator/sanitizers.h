// What the address and the thread sanitizer must be told of fibers, barriers and shared memory;
// nothing without them.
//
// The scheduler itself is compiled without the thread sanitizer (which would take its accesses for
// those of kernels) and with TRAINSCOPE_RACES: to the sanitizer every CUDA thread is a thread of
// its own, and what orders two of them is a barrier or the end of a grid, nothing else.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TRAINSCOPE_RACES
#include <sanitizer/tsan_interface.h>
#endif

namespace trainscope::cuda::emulator {

#ifdef TRAINSCOPE_RACES
inline constexpr bool kFindsRaces = true;
#else
inline constexpr bool kFindsRaces = false;
#endif

struct SanitizerStack {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake = nullptr;    // the address sanitizer's own frames of it
  void* thread = nullptr;  // as the thread sanitizer knows it
};

// CUDA threads as the thread sanitizer knows them. They and their stacks cost much to make, so
// blocks take turns with three sets of them: a block is unordered with the two that ran before it,
// and with others in other orders of blocks. What a thread did in an earlier grid comes before all
// of the next one, as on a GPU.
inline constexpr std::size_t kTurns = kFindsRaces ? 3 : 1;
class SanitizerThreads {
 public:
#ifdef TRAINSCOPE_RACES
  void* thread(std::size_t block, std::size_t number) {
    std::vector<void*>& set = sets_[block % kTurns];
    while (set.size() <= number) set.push_back(__tsan_create_fiber(0));
    return set[number];
  }

 private:
  std::vector<void*> sets_[kTurns];
#else
  void* thread(std::size_t /*block*/, std::size_t /*number*/) { return nullptr; }
#endif
};

// The thread of the host that runs the fibers.
inline void use_host_thread([[maybe_unused]] SanitizerStack& stack) {
#ifdef TRAINSCOPE_RACES
  stack.thread = __tsan_get_current_fiber();
#endif
}

// Before the stack pointer changes: `save` keeps what leaves, null where it ends.
inline void start_switch([[maybe_unused]] void** save, [[maybe_unused]] const SanitizerStack& to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(save, to.bottom, to.bytes);
#endif
#ifdef TRAINSCOPE_RACES
  __tsan_switch_to_fiber(to.thread, __tsan_switch_to_fiber_no_sync);
#endif
}

// After it: `fake` is what came back, `from` is told which stack was left.
inline void finish_switch([[maybe_unused]] void* fake, [[maybe_unused]] SanitizerStack* from) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, from == nullptr ? nullptr : &from->bottom,
                                  from == nullptr ? nullptr : &from->bytes);
#endif
}

// What a thread did before order_before(point) comes before what another does after a later
// order_after(point).
inline void order_before([[maybe_unused]] void* point) {
#ifdef TRAINSCOPE_RACES
  __tsan_release(point);
#endif
}
inline void order_after([[maybe_unused]] void* point) {
#ifdef TRAINSCOPE_RACES
  __tsan_acquire(point);
#endif
}

// Sets bytes without an access that the thread sanitizer sees.
inline void fill_unseen(void* data, unsigned char byte, std::size_t bytes) {
#ifdef TRAINSCOPE_RACES
  // It sees memset() wherever that is called from.
  asm volatile("rep stosb" : "+D"(data), "+c"(bytes) : "a"(byte) : "memory");
#else
  std::memset(data, byte, bytes);
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
