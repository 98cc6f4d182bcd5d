// A run of `train`: everything between reading the model and the trained file.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "cli/print/progress.h"
#include "cli/run/resume.h"
#include "cli/stop_signals.h"
#include "engine/bundle/writer.h"
#include "engine/session.h"

namespace trainscope {

// In order: constructor (reads, compiles, opens data; nothing is written), begin, then train until
// finished or stopped.
class TrainingRun {
 public:
  explicit TrainingRun(const Invocation& invocation);

  // All of it; 0, or the exit code of a signal. Errors are noted in the run's folder.
  Outcome run();
  // What `run` would do; writes nothing.
  Outcome preview();

 private:
  void begin();
  void open_writer(ResumePoint& point);
  void restore(const Checkpoint& checkpoint);
  void restore_best(const ResumePoint& point);
  void train();
  bool out_of_time() const;
  void train_step(std::int64_t step, BatchSource& batches);
  void save();
  void validate();
  void note_if_best(double loss);
  void end_failed(const Error& error);
  void finish();
  bool stop_requested() const { return signals_->requested() != 0; }
  bool has_result() const;
  CheckpointState state() const;
  Json metrics() const;
  Json summary() const;
  std::string summary_text() const;

  using Clock = std::chrono::steady_clock;
  const Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> deadline_;  // of --time-limit
  const Invocation& invocation_;
  const Settings& settings_;
  OnnxModel model_;
  Sizes sizes_;
  CompileOptions options_;
  Schedule schedule_;
  MetricsForms metrics_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<const Dataset> data_;
  std::optional<BatchOrder> order_;
  std::optional<Trainer> trainer_;
  std::optional<StopSignals> signals_;  // from when there is a session to end
  std::optional<RunWriter> writer_;
  std::optional<Progress> progress_;

  std::int64_t total_steps_ = 0;
  std::int64_t from_step_ = 0;
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = -1;
  std::int64_t samples_seen_ = 0;
  int stopped_ = 0;           // exit code of the signal that ended the session
  double training_ms_ = 0.0;  // of steps alone
  std::optional<StepRecord> first_;
  std::optional<StepRecord> last_;
  std::optional<EvaluationRecord> validation_;
  std::optional<BestCheckpoint> best_;  // only with --keep-best
};

}  // namespace trainscope
