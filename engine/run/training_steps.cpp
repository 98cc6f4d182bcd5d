// The steps of a session, and the evaluations and checkpoints between them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/run/evaluation.h"
#include "engine/run/training_run.h"

namespace trainscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

// Where the loss is no number, the error says how to find out why.
StepResult TrainingRun::run_step(std::int64_t step, double learning_rate, BatchSource& batches) {
  try {
    return trainer_->run_step(step, learning_rate, batches, events_.get());
  } catch (Error& error) {
    if (error.code() == ErrorCode::kNumeric && request_.keeps_result && !request_.ranks) {
      const std::filesystem::path batch =
          records_->folder() / kRunFailureFolder / kFailureBatchFile;
      error.at(fmt::format("`{}` names the call and what it read",
                           first_nan_command(records_->folder())));
      if (path_exists(batch)) {  // not where there was no room for it
        error.at(fmt::format("the step's batch is in {}", printable(batch.string())));
      }
    }
    throw;
  }
}

void TrainingRun::train_step(std::int64_t step, BatchSource& batches) {
  events_->step_begin(step);
  const auto start = Clock::now();
  const double learning_rate = learning_rate_at(request_.schedule, step);
  const StepResult result = run_step(step, learning_rate, batches);
  const StepPlace end{.step = step, .micro_batch = request_.compile.training.micro_batches};
  events_->results_begin(end);
  const StepRecord record{.step = step,
                          .loss = result.loss,
                          .learning_rate = learning_rate,
                          .gradient_norm = result.gradient_norm.value_or(kNotMeasured),
                          .step_ms = milliseconds_since(start),
                          .samples = result.examples,
                          .tokens = result.tokens,
                          .terms = result.terms};
  step_ = step;
  samples_seen_ += result.examples;
  training_ms_ += record.step_ms;
  if (!first_) first_ = record;
  last_ = record;
  events_->results_end(end);
  events_->step_end(record, session_->executor().used_bytes());
  events_->progress({.work = "training", .done = step_, .total = request_.steps});
}

// Each session does a step at least, so that a run that is resumed again and again ends.
bool TrainingRun::out_of_time() const {
  return step_ > from_step_ && request_.deadline && Clock::now() >= *request_.deadline;
}

// Of this session, unless it ends early.
std::int64_t TrainingRun::last_step() const {
  const std::int64_t left = request_.steps - from_step_;
  return from_step_ + std::min(left, request_.session_steps.value_or(left));
}

void TrainingRun::train() {
  const TrainingOptions& training = request_.compile.training;
  const std::int64_t before = request_.ranks ? request_.ranks->rank() * training.micro_batches : 0;
  const std::unique_ptr<BatchSource> batches =
      request_.open_batches(data_, *order_,
                            {.first = order_->batch_after(samples_seen_) + before,
                             .count = (last_step() - step_) * training.micro_batches,
                             .taken = training.micro_batches,
                             .skipped = training.all_micro_batches() - training.micro_batches});
  const std::int64_t save_every = request_.save_every;
  const std::int64_t evaluate_every = request_.evaluate_every;
  while (goes_on()) {
    train_step(step_ + 1, *batches);
    if (!leads()) continue;
    const bool is_last = step_ == request_.steps;
    if (evaluate_every > 0 && step_ % evaluate_every == 0 && !is_last) validate();
    if (save_every > 0 && step_ % save_every == 0) save();
  }
  events_->steps_end();
}

void TrainingRun::save() {
  if (saved_step_ == step_) return;
  events_->checkpoint_begin(step_);
  const std::vector<NamedTensor> model = trainer_->model_tensors();
  const std::vector<NamedTensor> optimizer = trainer_->optimizer_tensors();
  const CheckpointFile files[] = {{.name = "model", .tensors = model},
                                  {.name = "optimizer", .tensors = optimizer}};
  const Folder& root = records_->checkpoints_folder();
  const std::filesystem::path folder = save_checkpoint(root, state(), files);
  remove_old_checkpoints(root, step_, request_.keep);
  saved_step_ = step_;
  log_->debug("step {}: saved a checkpoint", step_);
  events_->checkpoint_end(step_, folder);
}

// A better model than all before: its checkpoint stays until there is a better one.
void TrainingRun::note_if_best(double loss) {
  const bool wanted = request_.evaluate_every > 0 && request_.keep_best;
  if (!wanted || !std::isfinite(loss) || (best_ && best_->loss <= loss)) return;
  best_ = {.step = step_, .loss = loss};
  save();
  note_best_checkpoint(records_->checkpoints_folder(), *best_);
  log_->debug("step {}: the best checkpoint so far", step_);
  events_->best_checkpoint(*best_);
}

// Ends the run once the loss has not fallen by enough for long enough.
void TrainingRun::note_gain(double loss) {
  if (!request_.early_stop) return;
  const bool is_first = !gain_ && std::isfinite(loss);
  if (is_first || (gain_ && loss < gain_->loss - request_.early_stop->least_gain)) {
    gain_ = {.step = step_, .loss = loss};
    evaluations_without_gain_ = 0;
    return;
  }
  ++evaluations_without_gain_;
  if (evaluations_without_gain_ < request_.early_stop->patience || step_ == request_.steps) return;
  ended_early_ = true;
  if (!gain_)
    return log_->info("step {}: no validation loss was a number: the run ends early", step_);
  log_->info("step {}: the validation loss was lowest at step {}: the run ends early", step_,
             gain_->step);
}

ValidationData TrainingRun::validation_data() const {
  return {.data = data_,
          .batch = request_.batch,
          .loss = request_.compile.training.loss,
          .batch_axes = request_.batch_axes,
          .watch = watch_};
}

// None when there are no examples, or when it was stopped: while its program was compiled, too.
std::optional<Evaluation> TrainingRun::evaluation() {
  try {
    const AveragesInUse averages(*trainer_);
    return evaluate_validation(*session_, request_.compile.import, validation_data());
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

void TrainingRun::validate() {
  events_->evaluation_begin(step_);
  const auto start = Clock::now();
  const std::optional<Evaluation> measured = evaluation();
  if (!measured) return events_->evaluation_stopped(step_);
  if (!std::isfinite(measured->loss)) {
    throw Error(ErrorCode::kNumeric,
                fmt::format("the validation loss after step {} is {}", step_, measured->loss))
        .hint("lower --lr, clip gradients (--clip 1), or look at the validation data");
  }
  validation_ = EvaluationRecord{.step = step_,
                                 .loss = measured->loss,
                                 .accuracy = measured->accuracy().value_or(kNotMeasured),
                                 .examples = measured->examples,
                                 .milliseconds = milliseconds_since(start)};
  events_->evaluation_end(*validation_);
  log_->info("step {}: validation {}", step_, evaluation_text(*validation_));
  note_gain(measured->loss);
  note_if_best(measured->loss);
}

std::string evaluation_text(const EvaluationRecord& record) {
  const std::string accuracy =
      std::isnan(record.accuracy) ? "" : fmt::format(", accuracy {:.4f}", record.accuracy);
  return fmt::format("loss {:.6g}{} over {} examples", record.loss, accuracy, record.examples);
}

}  // namespace trainscope
