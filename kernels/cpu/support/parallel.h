// Static division of a loop over the threads of the one libgomp pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/api/thread_watch.h"
#include "kernels/cpu/support/widest.h"

namespace trainscope::cpu {

// Elements of simple arithmetic that are worth a thread of their own.
inline constexpr std::int64_t kElementGrain = 32768;

// Rows (or columns) of `row_elements` elements that are worth a thread of their own.
constexpr std::int64_t row_grain(std::int64_t row_elements) {
  return std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, row_elements));
}

// Who is told of the loops that this thread calls, in the kernel that it runs; null: nobody.
inline constinit thread_local const ThreadWatch* thread_watch = nullptr;

class WatchScope {
 public:
  explicit WatchScope(const ThreadWatch* watch) : outer_(thread_watch) { thread_watch = watch; }
  ~WatchScope() { thread_watch = outer_; }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  const ThreadWatch* outer_;
};

// Calls f(begin, end), compiled for each width of registers, on at most `threads` contiguous chunks
// that cover [0, n), each of about `grain` iterations or more; on the calling thread alone when
// there is work for one chunk only. The chunks depend on n, grain and threads only, never on
// timing: what f writes must not depend on where a chunk begins, or the result depends on the
// number of threads.
template <class F>
void parallel_for(int threads, std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= 0) return;
  const std::int64_t wanted = n / std::max<std::int64_t>(1, grain);
  const std::int64_t chunks = std::clamp<std::int64_t>(wanted, 1, std::max(1, threads));
  if (chunks == 1) {
    in_widest_registers(f, std::int64_t{0}, n);
    return;
  }
  const std::int64_t share = n / chunks;
  const std::int64_t extra = n % chunks;  // the first `extra` chunks are one longer
  // Always the whole team, even for fewer chunks: libgomp ends the threads that a smaller team does
  // not need and starts (and allocates) them anew for the next larger one.
  const ThreadWatch* watch = thread_watch;
  if (watch != nullptr) watch->region_begin(watch->context, static_cast<int>(chunks));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (watch != nullptr) watch->thread_begin(watch->context, static_cast<int>(chunk));
    const std::int64_t begin = chunk * share + std::min(chunk, extra);
    in_widest_registers(f, begin, begin + share + (chunk < extra ? 1 : 0));
    if (watch != nullptr) watch->thread_end(watch->context, static_cast<int>(chunk));
  }
  if (watch != nullptr) watch->region_end(watch->context, static_cast<int>(chunks));
}

}  // namespace trainscope::cpu
