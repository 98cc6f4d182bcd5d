// The one driver of training: from a request to a recorded run and a trained model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "engine/core/log.h"
#include "engine/run/evaluation.h"
#include "engine/run/resume.h"
#include "engine/run/run_events.h"
#include "engine/run/run_records.h"
#include "engine/run/train_request.h"
#include "engine/session.h"
#include "kernels/api/device.h"

namespace trainscope {

class NumericsRecorder;

// What a session came to.
struct TrainingResult {
  std::filesystem::path folder;            // of the run
  RunStatus status = RunStatus::kRunning;  // kFinished, or kInterrupted by a stop or a limit
  int exit_code = 0;  // as the session's record has it: 0 unless it was stopped
  std::int64_t from_step = 0;
  std::int64_t step = 0;             // the last one done
  std::int64_t steps = 0;            // of the request
  std::int64_t to_step = 0;          // the last one that this session was to make
  std::int64_t samples_seen = 0;     // examples since the begin of the run
  double training_ms = 0.0;          // of this session's steps alone
  std::int64_t predicted_bytes = 0;  // of the arena
  std::int64_t used_bytes = 0;
  DeviceMemory device_memory = {};       // when the last step was done
  BeyondPlan beyond_plan = {};           // of loops with more trips than there was room for
  std::filesystem::path model = {};      // the trained model; empty: stopped before the first step
  std::optional<StepRecord> first = {};  // steps of this session
  std::optional<StepRecord> last = {};
  std::optional<EvaluationRecord> validation = {};  // the last one
  std::optional<BestCheckpoint> best = {};          // with keep_best
  bool ended_early = false;                         // the validation loss did not fall any more
};

// What a session would do.
struct TrainingPreview {
  std::int64_t from_step = 0;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t micro_batches = 0;
  std::int64_t training_examples = 0;
  std::int64_t calls = 0;  // of a step's program
  std::int64_t predicted_bytes = 0;
};

// One session of a run. In order: the constructor, which reads, compiles and opens the data; then
// run() or preview(), once.
class TrainingRun {
 public:
  // Writes nothing. Throws Error for a request that cannot be trained (kUsage, kBadInput, kIo,
  // kOutOfMemory), and Stopped when it is asked to stop meanwhile.
  TrainingRun(TrainRequest request, std::shared_ptr<RunEvents> events, std::stop_token stop = {});

  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Trains and records. A stop ends it after the step under way, with a checkpoint and the trained
  // model, from which `resume` goes on bit for bit. Throws Error, which the run's folder notes:
  // kUsage when the run must not go on with this request, kNumeric for a loss that is no number,
  // kIo when something cannot be written, kDistributed when another rank has ended or does not do
  // the same.
  TrainingResult run();
  // Looks at what is to be resumed, and writes nothing.
  TrainingPreview preview();

 private:
  void join_ranks();
  bool leads() const { return request_.ranks == nullptr || request_.ranks->rank() == 0; }
  void share_beginning();
  bool goes_on();
  void tell_other_ranks(const Error& error);
  void begin();
  void begin_recorded();
  std::shared_ptr<NumericsRecorder> numerics_recorder();
  void restore(const ResumePoint& point);
  void begin_at(const GivenStart& start);
  void restore_best(const ResumePoint& point);
  void tell_begin();
  void train();
  void train_step(std::int64_t step, BatchSource& batches);
  StepResult run_step(std::int64_t step, double learning_rate, BatchSource& batches);
  bool out_of_time() const;
  std::int64_t last_step() const;
  void save();
  void validate();
  ValidationData validation_data() const;
  std::optional<Evaluation> evaluation();
  void note_if_best(double loss);
  void note_gain(double loss);
  void settle_steps();
  void finish();
  void end_failed(const Error& error);
  bool has_result() const { return request_.keeps_result && (!stopped_ || step_ > from_step_); }
  bool stop_requested() const { return watch_.stop.stop_requested(); }
  const Program& program() const { return session_->compiled().program; }
  CheckpointState state() const;
  TrainingResult result() const;

  TrainRequest request_;
  std::shared_ptr<Communicator> device_channel_;  // between ranks; null: this process is alone
  std::shared_ptr<RunEvents> listener_;
  std::shared_ptr<RunListeners> events_;  // the record first
  Watch watch_;                           // the stop token, and the listeners
  std::shared_ptr<Logger> log_;  // to the listeners, and to log.jsonl once there is a folder
  std::optional<Session> session_;
  std::vector<Subscription> subscriptions_;  // of the request's listeners to its steps
  std::shared_ptr<const Dataset> data_;
  std::optional<BatchOrder> order_;
  std::optional<Trainer> trainer_;
  std::shared_ptr<RunRecords> records_;  // from when there is a session to end; of rank 0

  bool opening_told_ = false;  // then listeners hear how the session ends
  std::int64_t from_step_ = 0;
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = -1;
  std::int64_t samples_seen_ = 0;
  double training_ms_ = 0.0;
  bool stopped_ = false;  // as the session ended
  RunStatus status_ = RunStatus::kRunning;
  int exit_code_ = 0;
  std::optional<StepRecord> first_;
  std::optional<StepRecord> last_;
  std::optional<EvaluationRecord> validation_;
  std::optional<BestCheckpoint> best_;
  // Of early stopping: where the loss fell by enough, and evaluations since.
  std::optional<BestCheckpoint> gain_;
  std::int64_t evaluations_without_gain_ = 0;
  bool ended_early_ = false;
};

// "loss 2.31, accuracy 0.4 over 1000 examples", for people.
std::string evaluation_text(const EvaluationRecord& record);

// The two in one: for whoever has a listener at hand, which need not outlive the call.
TrainingResult train(TrainRequest request, RunEvents& events, std::stop_token stop = {});

}  // namespace trainscope
