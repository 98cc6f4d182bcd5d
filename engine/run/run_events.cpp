// Hands each event on.
#include "engine/run/run_events.h"

#include <algorithm>
#include <exception>

namespace trainscope {

void RunListeners::batch_wait_begin(const StepPlace& at) {
  for (const auto& each : listeners_) each->batch_wait_begin(at);
}

void RunListeners::batch_wait_end(const StepPlace& at, double milliseconds) {
  for (const auto& each : listeners_) each->batch_wait_end(at, milliseconds);
}

void RunListeners::step_part_begin(StepPart part, const StepPlace& at) {
  for (const auto& each : listeners_) each->step_part_begin(part, at);
}

void RunListeners::step_part_end(StepPart part, const StepPlace& at) {
  for (const auto& each : listeners_) each->step_part_end(part, at);
}

void RunListeners::inputs_begin(const StepPlace& at) {
  for (const auto& each : listeners_) each->inputs_begin(at);
}

void RunListeners::inputs_end(const StepPlace& at) {
  for (const auto& each : listeners_) each->inputs_end(at);
}

void RunListeners::results_begin(const StepPlace& at) {
  for (const auto& each : listeners_) each->results_begin(at);
}

void RunListeners::results_end(const StepPlace& at) {
  for (const auto& each : listeners_) each->results_end(at);
}

void RunListeners::rank_wait_begin(const StepPlace& at) {
  for (const auto& each : listeners_) each->rank_wait_begin(at);
}

void RunListeners::rank_wait_end(const StepPlace& at) {
  for (const auto& each : listeners_) each->rank_wait_end(at);
}

void RunListeners::bad_loss(const StepPlace& at, const Batch& batch, double loss) {
  for (const auto& each : listeners_) each->bad_loss(at, batch, loss);
}

void RunListeners::session_opening() {
  for (const auto& each : listeners_) each->session_opening();
}

void RunListeners::session_begin(const SessionFacts& facts) {
  for (const auto& each : listeners_) each->session_begin(facts);
}

void RunListeners::step_begin(std::int64_t step) {
  for (const auto& each : listeners_) each->step_begin(step);
}

void RunListeners::step_end(const StepRecord& step, std::int64_t used_bytes) {
  for (const auto& each : listeners_) each->step_end(step, used_bytes);
}

void RunListeners::steps_end() {
  for (const auto& each : listeners_) each->steps_end();
}

void RunListeners::phase_begin(Phase phase) {
  for (const auto& each : listeners_) {
    if (each->wants_phases()) each->phase_begin(phase);
  }
}

void RunListeners::phase_end(Phase phase) {
  for (const auto& each : listeners_) {
    if (each->wants_phases()) each->phase_end(phase);
  }
}

bool RunListeners::wants_phases() const {
  return std::ranges::any_of(listeners_, [](const auto& each) { return each->wants_phases(); });
}

void RunListeners::evaluation_begin(std::int64_t step) {
  for (const auto& each : listeners_) each->evaluation_begin(step);
}

void RunListeners::evaluation_end(const EvaluationRecord& evaluation) {
  for (const auto& each : listeners_) each->evaluation_end(evaluation);
}

void RunListeners::evaluation_stopped(std::int64_t step) {
  for (const auto& each : listeners_) each->evaluation_stopped(step);
}

void RunListeners::checkpoint_begin(std::int64_t step) {
  for (const auto& each : listeners_) each->checkpoint_begin(step);
}

void RunListeners::checkpoint_end(std::int64_t step, const std::filesystem::path& folder) {
  for (const auto& each : listeners_) each->checkpoint_end(step, folder);
}

void RunListeners::best_checkpoint(const BestCheckpoint& best) {
  for (const auto& each : listeners_) each->best_checkpoint(best);
}

void RunListeners::progress(const Progress& moment) {
  for (const auto& each : listeners_) each->progress(moment);
}

void RunListeners::log(LogLevel level, std::string_view message) {
  for (const auto& each : listeners_) each->log(level, message);
}

void RunListeners::session_end(RunStatus status) {
  for (const auto& each : listeners_) each->session_end(status);
}

// Each hears of it: the failure is the one to report, not what a listener fails with now.
void RunListeners::session_failed(const Error& error) {
  for (const auto& each : listeners_) {
    try {
      each->session_failed(error);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace trainscope
