// Trainer: steps of a compiled training program over batches, and evaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/safetensors.h"
#include "engine/exec/executor.h"
#include "engine/train/accuracy.h"
#include "engine/train/bad_loss.h"
#include "engine/train/data.h"
#include "engine/train/step_events.h"
#include "kernels/api/communicator.h"

namespace trainscope {

// The terms of a loss that is a sum, without their weights, by name.
using LossTerms = std::vector<std::pair<std::string, double>>;

// Of all ranks together, where there are several.
struct StepResult {
  double loss = 0.0;                    // mean over the step's micro-batches
  LossTerms terms = {};                 // the same of each term; none where there is one loss
  std::optional<double> gradient_norm;  // before clipping; only with clipping
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
};

class Trainer {
 public:
  // The executor's program must have been compiled with GraphMode::kTrain, for as many
  // micro-batches and ranks. `ranks`: the channel between their hosts; null: there is one.
  Trainer(std::shared_ptr<Executor> executor, std::int64_t micro_batches,
          std::shared_ptr<Communicator> ranks = nullptr);

  // A loss that is no number names these where they stand at its first bad tensor (bad_loss.h).
  void set_unmarked(UnmarkedNames names) { unmarked_ = std::move(names); }

  // Runs step `step` (from 1) on the next micro_batches batches. Throws kNumeric before the update,
  // naming the first bad tensor, when the loss is not finite, or the rank whose loss is not;
  // kBadInput when a batch does not fit; kDistributed when the ranks cannot speak to each other.
  // `events` (null: nobody) learn of its phases.
  StepResult run_step(std::int64_t step, double learning_rate, BatchSource& batches,
                      StepEvents* events = nullptr);

  // Parameters and the model's own states (running statistics), by ONNX name: as they are when they
  // are read.
  std::vector<NamedTensor> model_tensors() const;
  // Moments of the optimizer, by their graph name.
  std::vector<NamedTensor> optimizer_tensors() const;
  // Fills `tensors`, as the two functions above gave them, from a checkpoint's file.
  void restore(const SafetensorsFile& file, std::span<const NamedTensor> tensors);
  // Parameters take the places of their averages, and these theirs, where averages are kept: twice,
  // and all is as before.
  void swap_averages();

 private:
  const Batch& next_batch(BatchSource& batches, const StepPlace& at, StepEvents& events);
  void bind(const Batch& batch, const StepPlace& at);
  double run_micro_step(const Batch& batch, const StepPlace& at, StepEvents& events);
  // After the micro-steps.
  StepResult run_update(const StepPlace& at, StepEvents& events);
  void tell_ranks(const StepPlace& at, StepEvents& events);
  // Fails with kNumeric where the loss of a rank is no number.
  void check_ranks(std::int64_t step) const;
  std::span<const double> report_of_rank(int rank) const;
  StepResult result_of_ranks() const;
  std::size_t report_of(std::int64_t micro_batch) const;
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  int ranks() const { return ranks_ == nullptr ? 1 : ranks_->size(); }

  std::shared_ptr<Executor> executor_;
  std::int64_t micro_batches_;
  std::shared_ptr<Communicator> ranks_;  // null: this process is alone
  // Scalars of the step; kNoValue where the program has no use for one.
  ValueId step_input_ = kNoValue;
  ValueId learning_rate_input_ = kNoValue;
  ValueId micro_step_input_ = kNoValue;
  ValueId random_step_input_ = kNoValue;
  ValueId gradient_norm_ = kNoValue;
  std::vector<std::pair<std::string, ValueId>> terms_;  // of the loss, by name
  // What this rank, and all of them in their order, tell of a step: of each micro-batch its loss
  // and the terms of that, then the examples and the tokens of all.
  std::vector<double> report_;
  std::vector<double> reports_;
  UnmarkedNames unmarked_;
};

// Averages stand for the parameters while it lives.
class AveragesInUse {
 public:
  explicit AveragesInUse(Trainer& trainer) : trainer_(trainer) { trainer_.swap_averages(); }
  ~AveragesInUse() { trainer_.swap_averages(); }
  AveragesInUse(const AveragesInUse&) = delete;
  AveragesInUse& operator=(const AveragesInUse&) = delete;

 private:
  Trainer& trainer_;
};

// Copies a batch's tensors into the inputs of the same names.
void bind_batch(Executor& executor, const Batch& batch);
// The program's loss after a micro-step.
double read_loss(const Executor& executor);

// What the loss of a batch counts as in the mean over all batches: its labels that count, or its
// examples, where no number of labels says what the loss is a mean over.
enum class BatchWeight : std::uint8_t { kLossTerms, kExamples };

struct Evaluation {
  double loss = 0.0;  // mean over the batches, by BatchWeight
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  LabelCount counted = {};  // no labels unless asked for

  // Share of the labels that the highest score names; none without labels.
  std::optional<double> accuracy() const;
};
// The executor's program must have been compiled with GraphMode::kEvaluate. With `classes` the
// labels that the scores name are counted too, where these are an output of the program.
Evaluation evaluate(Executor& executor, BatchSource& batches,
                    const std::optional<ScoredClasses>& classes = std::nullopt,
                    BatchWeight weight = BatchWeight::kLossTerms);

}  // namespace trainscope
