// malloc and its family, in front of glibc's own.
#include "tests/support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRAINSCOPE_HOOKS 0
#else
#define TRAINSCOPE_HOOKS 1
#endif

namespace trainscope::test {
namespace {

// Hooks are called before main and by every thread: plain atomics, nothing that allocates.
std::atomic<bool> counting{false};
std::atomic<std::int64_t> calls{0};
std::atomic<std::int64_t> alive_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};

[[maybe_unused]] void* allocated(void* memory) {
  if (!counting.load(std::memory_order_relaxed) || memory == nullptr) return memory;
  calls.fetch_add(1, std::memory_order_relaxed);
  const auto bytes = static_cast<std::int64_t>(malloc_usable_size(memory));
  const std::int64_t alive = alive_bytes.fetch_add(bytes) + bytes;
  std::int64_t peak = peak_bytes.load();
  while (alive > peak && !peak_bytes.compare_exchange_weak(peak, alive)) {
  }
  return memory;
}

[[maybe_unused]] void freed(void* memory) {
  if (!counting.load(std::memory_order_relaxed) || memory == nullptr) return;
  alive_bytes.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)));
}

}  // namespace

bool can_count_allocations() { return TRAINSCOPE_HOOKS != 0; }

void start_counting_allocations() {
  calls = 0;
  alive_bytes = 0;
  peak_bytes = 0;
  counting = true;
}

AllocationCount allocation_count() {
  return {.calls = calls, .alive_bytes = alive_bytes, .peak_bytes = peak_bytes};
}

void stop_counting_allocations() { counting = false; }

}  // namespace trainscope::test

#if TRAINSCOPE_HOOKS
using trainscope::test::allocated;
using trainscope::test::freed;

extern "C" {
// glibc's own functions under their second names.
void* __libc_malloc(std::size_t bytes);
void __libc_free(void* memory);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) { return allocated(__libc_malloc(bytes)); }
void free(void* memory) {
  freed(memory);
  __libc_free(memory);
}
void* calloc(std::size_t count, std::size_t bytes) {
  return allocated(__libc_calloc(count, bytes));
}
void* realloc(void* memory, std::size_t bytes) {
  freed(memory);
  return allocated(__libc_realloc(memory, bytes));
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return allocated(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return allocated(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  void* memory = __libc_memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *result = allocated(memory);
  return 0;
}
}
#endif
