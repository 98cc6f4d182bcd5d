// SIGINT and SIGTERM: at first they end the process, later they are a question that a loop asks.
#pragma once

namespace trainscope {

// From now on these signals end the process at once, with exit code 130 or 143: for as long as
// there is nothing to save, in every verb.
void end_at_stop_signals();

// While it lives the first signal is only noted; a second one ends the process at once. The state
// is the process's: at most one may live.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code of the signal that came: 130 or 143.
  int requested() const;
};

}  // namespace trainscope
