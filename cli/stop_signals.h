// SIGINT and SIGTERM as a question that a loop asks.
#pragma once

#include <atomic>
#include <thread>

namespace trainscope {

// From its construction on, the first signal is only noted; a second one ends the process at once.
// Construct it before other threads are: they inherit that they do not take the signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code of the signal that came: 130 or 143.
  int requested() const { return requested_.load(); }

 private:
  void wait();

  int signals_ = -1;  // file descriptors
  int quit_ = -1;
  std::atomic<int> requested_ = 0;
  std::thread thread_;
};

}  // namespace trainscope
