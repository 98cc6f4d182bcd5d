// libgomp reports no failure, so the system is asked for threads of our own first. They end again
// before libgomp starts its own, which it keeps from then on.
#include "kernels/cpu/support/threads.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <thread>
#include <vector>

namespace trainscope::cpu {
namespace {

constexpr auto kPause = std::chrono::milliseconds(1);
constexpr int kMostPauses = 20;

bool exists(pid_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) == 0; }

// A thread that was joined counts against the limits until the system has forgotten it.
void wait_until_forgotten(const std::vector<pid_t>& threads) {
  int pauses = 0;
  for (pid_t thread : threads) {
    while (exists(thread) && pauses++ < kMostPauses) std::this_thread::sleep_for(kPause);
  }
}

// Whether the system gives so many more threads at the same time.
[[maybe_unused]] std::error_code try_threads(int count) {
  std::error_code failure;
  std::latch all_started(1);
  std::vector<pid_t> ids(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  try {
    for (pid_t& id : ids) {
      threads.emplace_back([&all_started, &id] {
        id = static_cast<pid_t>(syscall(SYS_gettid));
        all_started.wait();
      });
    }
  } catch (const std::system_error& error) {
    failure = error.code();
  }
  all_started.count_down();
  for (std::thread& thread : threads) thread.join();
  ids.resize(threads.size());
  wait_until_forgotten(ids);
  return failure;
}

}  // namespace

std::error_code start_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  thread_local int started = 1;
  if (threads <= started) return {};
  std::error_code failure = try_threads(threads - started);
  // A planner's threads that have just ended count for a moment, too.
  for (int pauses = 0; failure && pauses < kMostPauses; ++pauses) {
    std::this_thread::sleep_for(kPause);
    failure = try_threads(threads - started);
  }
  if (failure) return failure;
  started = threads;
  // A loop that did nothing would be left out, and its threads with it.
  std::atomic<int> running = 0;
#pragma omp parallel num_threads(threads)
  ++running;
#endif
  return {};
}

}  // namespace trainscope::cpu
