// The handler knows one number: what a signal does next.
#include "cli/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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
std::atomic<int> signal_state = kEnd;
static_assert(std::atomic<int>::is_always_lock_free);

int exit_code_of(int signal) { return signal == SIGINT ? kExitInterrupted : kExitTerminated; }

// Runs on any thread, between any two instructions: only atomics and _exit.
void take_signal(int signal) {
  const int code = exit_code_of(signal);
  while (true) {
    int now = signal_state.load();
    const bool note = now == kNote;
    if (!signal_state.compare_exchange_weak(now, note ? code : kEnding)) continue;
    if (note) return;
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
  int now = kEnd;
  if (signal_state.compare_exchange_strong(now, kNote)) return;
  CHECK_INVARIANT(now == kEnding);  // nobody else notes signals
  // The process ends: what its owner would begin now would never be ended.
  while (true) pause();
}

StopSignals::~StopSignals() { signal_state.store(kEnd); }

int StopSignals::requested() const { return std::max(signal_state.load(), 0); }

void StopSignals::pass_on() {
  if (requested() != 0) source_.request_stop();
}

}  // namespace trainscope
