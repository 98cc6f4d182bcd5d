// From when a run has something to save, signals ask it to stop.
#pragma once

#include <optional>
#include <stop_token>
#include <utility>

#include "cli/stop_signals.h"
#include "engine/run/run_events.h"

namespace trainscope {

// Passes signals on between the pieces of a run's work, of which each tells how far it is.
class SignalListener final : public RunEvents {
 public:
  explicit SignalListener(std::stop_source stop) : stop_(std::move(stop)) {}

  void session_opening() override { signals_.emplace(stop_); }
  void progress(const Progress& /*moment*/) override { pass_on(); }
  void steps_end() override { pass_on(); }

  // Of the signal that came; 0 where none did, or something else asked to stop.
  int exit_code() const { return signals_ ? signals_->requested() : 0; }

 private:
  void pass_on() {
    if (signals_) signals_->pass_on();
  }

  std::stop_source stop_;
  std::optional<StopSignals> signals_;
};

}  // namespace trainscope
