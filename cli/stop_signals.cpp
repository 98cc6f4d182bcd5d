// The handler knows one number, what a signal does next, and wakes the thread that asks to stop.
#include "cli/stop_signals.h"

#include <fmt/format.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <utility>

#include "cli/exit_codes.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

// What the next signal does; above 0 is the exit code of one that was noted.
constexpr int kNote = 0;
constexpr int kEnd = -1;
constexpr int kEnding = -2;  // a thread is on its way out

// A signal handler has no other way to its context.
std::atomic<int> state = kEnd;
sem_t wake;  // of the watching thread; made with the first one
static_assert(std::atomic<int>::is_always_lock_free);

int exit_code_of(int signal) { return signal == SIGINT ? kExitInterrupted : kExitTerminated; }

// Runs on any thread, between any two instructions: only atomics and _exit.
void take_signal(int signal) {
  const int code = exit_code_of(signal);
  while (true) {
    int now = state.load();
    const bool note = now == kNote;
    if (!state.compare_exchange_weak(now, note ? code : kEnding)) continue;
    if (note) {
      sem_post(&wake);
      return;
    }
    _exit(code);
  }
}

}  // namespace

void end_at_stop_signals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  struct sigaction action = {};
  action.sa_handler = take_signal;
  action.sa_mask = both;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &both, nullptr);  // a parent may have blocked them
}

StopSignals::StopSignals(std::stop_source source) : source_(std::move(source)) {
  static const int made = sem_init(&wake, 0, 0);
  CHECK_INVARIANT(made == 0);
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("cannot start the thread that waits for signals: {}", error.code().message()))
        .hint("a higher limit of threads (`ulimit -u`, or the cgroup's pids.max)");
  }
  int now = kEnd;
  if (state.compare_exchange_strong(now, kNote)) return;
  CHECK_INVARIANT(now == kEnding);  // nobody else notes signals
  // The process ends: what its owner would begin now would never be ended.
  while (true) pause();
}

StopSignals::~StopSignals() {
  state.store(kEnd);
  closing_ = true;
  sem_post(&wake);
  watcher_.join();
}

// Woken by the handler, or at the end.
void StopSignals::watch() {
  while (requested() == 0 && !closing_) sem_wait(&wake);
  if (requested() != 0) source_.request_stop();
}

int StopSignals::requested() const { return std::max(state.load(), 0); }

}  // namespace trainscope
