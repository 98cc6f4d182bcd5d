// Training steps on one batch, timed: for `bench`, without a run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "engine/compile.h"
#include "engine/op_times.h"
#include "engine/train/data.h"
#include "engine/train/trainer.h"

namespace trainscope {

// A step that was run.
struct TimedStep {
  double loss = 0.0;
  double milliseconds = 0.0;
};

// What the ops of a step take.
struct OpMeasurement {
  std::vector<OpTime> ops;  // medians, in the order of the program
  StepSplit step;           // the median of the steps measured
};

class TimedSteps {
 public:
  // Compiles; each step is forward, backward and update on the batch that `make_batch` gives for
  // the program. Throws what compile() throws.
  TimedSteps(const OnnxModel& model, const CompileOptions& options,
             const std::function<Batch(const Compiled&)>& make_batch, double learning_rate);

  // `events` is told of the step; null: nobody.
  TimedStep run(StepEvents* events = nullptr);
  // Runs so many steps more, whose clock reads make them slower than others. `file` gets the times
  // as CompileOptions::costs reads them.
  OpMeasurement measure_ops(std::int64_t steps, const std::filesystem::path& file);

  const Compiled& compiled() const { return *compiled_; }
  const Executor& executor() const { return *executor_; }
  Executor& executor() { return *executor_; }

 private:
  std::shared_ptr<Compiled> compiled_;
  std::shared_ptr<Executor> executor_;
  std::unique_ptr<BatchSource> batches_;
  Trainer trainer_;
  double learning_rate_;
  std::int64_t step_ = 0;  // the last one run
};

}  // namespace trainscope
