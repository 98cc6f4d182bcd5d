// SIGINT and SIGTERM: at first they end the process, later they ask work to stop.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace trainscope {

// From now on these signals end the process at once, with exit code 130 or 143: for as long as
// there is nothing to save, in every verb.
void end_at_stop_signals();

// While it lives the first signal asks the source's work to stop, by a thread of its own; a second
// one ends the process at once. The state is the process's: at most one may live.
class StopSignals {
 public:
  // Throws kOutOfMemory when the system gives no thread.
  explicit StopSignals(std::stop_source source);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code of the signal that came: 130 or 143.
  int requested() const;

 private:
  void watch();

  std::stop_source source_;
  std::atomic<bool> closing_ = false;
  std::thread watcher_;
};

}  // namespace trainscope
