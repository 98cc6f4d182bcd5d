// What a training run tells while it goes on: for progress, logs, windows and records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/progress.h"
#include "engine/train/checkpoint.h"
#include "engine/train/step_events.h"

namespace trainscope {

// A session as it begins.
struct SessionFacts {
  std::filesystem::path folder;          // of the run
  std::int64_t from_step = 0;            // done by earlier sessions
  std::int64_t total_steps = 0;          // of the run
  std::int64_t to_step = 0;              // the last one of this session, unless it ends early
  std::int64_t batch = 0;                // examples of a micro-batch
  std::int64_t micro_batches = 0;        // of a step
  std::int64_t training_examples = 0;    // of the data
  std::int64_t validation_examples = 0;  // of the data
  std::int64_t arena_bytes = 0;          // of the device, as planned
  // What steps run: graph, plan and calls that execution events name.
  std::shared_ptr<const Compiled> compiled = {};
};

// Everything does nothing here: a listener takes what it wants. All calls come from the thread that
// drives the run, one after the other, so a listener that hands them to another thread has to lock;
// the run waits for each call. Arguments live during the call alone. What a call throws ends the
// run as failed.
//
// The order: progress() while the model is compiled; session_opening(), session_begin(); for each
// step step_begin(), the calls of StepEvents, results of the step as a whole, step_end(), then
// evaluations and checkpoints after it; steps_end(), the last evaluation and checkpoint;
// session_end(). session_failed() may come instead of anything that follows session_opening(), also
// before session_begin(): it then ends all that has begun, a step, phase, evaluation or checkpoint
// whose end was not told. After session_opening() one of session_end() and session_failed() comes,
// both only where a listener throws at session_end(). log() comes at any time.
class RunEvents : public StepEvents {
 public:
  // Nothing has been written yet. From here on the session is to be ended by its stop token alone,
  // so that what it trains is saved.
  virtual void session_opening() {}
  // The folder is there, with its manifest; stages and plan are written next.
  virtual void session_begin(const SessionFacts& /*facts*/) {}

  virtual void step_begin(std::int64_t /*step*/) {}
  // `used_bytes` of the arena, so far.
  virtual void step_end(const StepRecord& /*step*/, std::int64_t /*used_bytes*/) {}
  // The session makes no more steps.
  virtual void steps_end() {}

  // Within a step's part: forward and backward in a micro-step, the update by itself, each from its
  // first call to the first of the next. For those who want them: the executor then tells each of
  // its calls. They must not throw. The sums of partials behind a section and the copies of states
  // are of the phase of what they belong to (Call::phase).
  virtual void phase_begin(Phase /*phase*/) {}
  virtual void phase_end(Phase /*phase*/) {}
  virtual bool wants_phases() const { return false; }

  // After a step.
  virtual void evaluation_begin(std::int64_t /*step*/) {}
  virtual void evaluation_end(const EvaluationRecord& /*evaluation*/) {}
  // Instead of its end: it was stopped, or has no examples. Nothing was measured.
  virtual void evaluation_stopped(std::int64_t /*step*/) {}
  virtual void checkpoint_begin(std::int64_t /*step*/) {}
  virtual void checkpoint_end(std::int64_t /*step*/, const std::filesystem::path& /*folder*/) {}
  // Its checkpoint is saved: it has the lowest validation loss so far.
  virtual void best_checkpoint(const BestCheckpoint& /*best*/) {}

  // Of compilation (see CompileOptions::watch), after each step ("training"), before each batch of
  // an evaluation ("evaluation") and each file of the record ("record"). The run looks at its stop
  // token after each of these calls, so this is where a listener may ask it to stop.
  virtual void progress(const Progress& /*moment*/) {}
  // A line without its end, as log.jsonl gets it.
  virtual void log(LogLevel /*level*/, std::string_view /*message*/) {}

  // The session has ended as `status` says: kFinished, or kInterrupted by a stop or a time limit.
  virtual void session_end(RunStatus /*status*/) {}
  // ... by an error, which is thrown next.
  virtual void session_failed(const Error& /*error*/) {}
};

// Tells several listeners, each call in the order in which they were added.
class RunListeners final : public RunEvents {
 public:
  RunListeners() = default;
  explicit RunListeners(std::vector<std::shared_ptr<RunEvents>> listeners)
      : listeners_(std::move(listeners)) {}

  void add(std::shared_ptr<RunEvents> listener) { listeners_.push_back(std::move(listener)); }

  void batch_wait_begin(const StepPlace& at) override;
  void batch_wait_end(const StepPlace& at, double milliseconds) override;
  void step_part_begin(StepPart part, const StepPlace& at) override;
  void step_part_end(StepPart part, const StepPlace& at) override;
  void inputs_begin(const StepPlace& at) override;
  void inputs_end(const StepPlace& at) override;
  void results_begin(const StepPlace& at) override;
  void results_end(const StepPlace& at) override;
  void rank_wait_begin(const StepPlace& at) override;
  void rank_wait_end(const StepPlace& at) override;
  void bad_loss(const StepPlace& at, const Batch& batch, double loss) override;
  void session_opening() override;
  void session_begin(const SessionFacts& facts) override;
  void step_begin(std::int64_t step) override;
  void step_end(const StepRecord& step, std::int64_t used_bytes) override;
  void steps_end() override;
  void phase_begin(Phase phase) override;
  void phase_end(Phase phase) override;
  bool wants_phases() const override;
  void evaluation_begin(std::int64_t step) override;
  void evaluation_end(const EvaluationRecord& evaluation) override;
  void evaluation_stopped(std::int64_t step) override;
  void checkpoint_begin(std::int64_t step) override;
  void checkpoint_end(std::int64_t step, const std::filesystem::path& folder) override;
  void best_checkpoint(const BestCheckpoint& best) override;
  void progress(const Progress& moment) override;
  void log(LogLevel level, std::string_view message) override;
  void session_end(RunStatus status) override;
  void session_failed(const Error& error) override;

 private:
  std::vector<std::shared_ptr<RunEvents>> listeners_;
};

}  // namespace trainscope
