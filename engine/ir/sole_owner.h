// Whether what is shared may be changed in place: copy on write asks this.
#pragma once

#include <atomic>
#include <memory>

namespace trainscope {

// True: nobody else has it, and what those who had it read of it is over. use_count() alone is a
// relaxed load, which says that their owners are gone but not that their reads came before.
template <class T>
bool is_sole_owner(const std::shared_ptr<T>& shared) {
  if (shared.use_count() != 1) return false;
#ifdef __SANITIZE_THREAD__  // it sees no fences, but what taking another share comes after
  const std::shared_ptr<T> another = shared;
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return true;
}

}  // namespace trainscope
