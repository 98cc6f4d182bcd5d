// A parallel loop over parts of work that may throw: calls into libraries.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {

// f(part) for the parts [0, parts). Where some throw, one of the exceptions leaves when all threads
// have ended their parts, or met an exception: out of parallel_for none may, the process would end.
template <class F>
void parallel_parts(int threads, std::int64_t parts, F&& f) {
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure;
  parallel_for(threads, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    try {
      for (std::int64_t part = begin; part < end; ++part) f(part);
    } catch (...) {
      if (!failed.test_and_set()) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainscope::cpu
