// SIGINT and SIGTERM: at first they end the process, later they ask work to stop.
#pragma once

#include <stop_token>

namespace trainscope {

// From now on these signals end the process at once, with exit code 130 or 143: for as long as
// there is nothing to save, in every verb.
void end_at_stop_signals();

// While it lives the first signal is only noted, for pass_on(): a handler may not touch a stop
// source. A second one ends the process at once. The state is the process's: at most one may live.
class StopSignals {
 public:
  explicit StopSignals(std::stop_source source);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code of the signal that came: 130 or 143.
  int requested() const;
  // Asks the source's work to stop if a signal came; to be called between its pieces.
  void pass_on();

 private:
  std::stop_source source_;
};

}  // namespace trainscope
