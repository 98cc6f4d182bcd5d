// A parallel loop over chunks of work that may throw: calls into libraries.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {

// f(chunk) for the chunks [0, chunks). Where some throw, one of the exceptions leaves when all
// threads have ended their chunks, or met an exception: out of parallel_for none may, the process
// would end.
template <class F>
void parallel_chunks(int threads, std::int64_t chunks, F&& f) {
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure;
  parallel_for(threads, chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    try {
      for (std::int64_t chunk = begin; chunk < end; ++chunk) f(chunk);
    } catch (...) {
      if (!failed.test_and_set()) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainscope::cpu
