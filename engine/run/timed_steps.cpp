// Compiles a step, repeats it, and looks at the clock.
#include "engine/run/timed_steps.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/core/error.h"
#include "engine/session.h"

namespace trainscope {
namespace {

// The same batch again and again.
class OneBatch final : public BatchSource {
 public:
  explicit OneBatch(Batch batch) : batch_(std::move(batch)) {}
  const Batch* next() override { return &batch_; }

 private:
  Batch batch_;
};

}  // namespace

TimedSteps::TimedSteps(const OnnxModel& model, const CompileOptions& options,
                       const std::function<Batch(const Compiled&)>& make_batch,
                       double learning_rate)
    : compiled_(compile(model, options)),
      executor_(make_executor(compiled_)),
      batches_(std::make_unique<OneBatch>(make_batch(*compiled_))),
      trainer_(executor_, options.training.micro_batches),
      learning_rate_(learning_rate) {
  executor_->load_initial();
  release_initial(*compiled_);
}

TimedStep TimedSteps::run(StepEvents* events) {
  const auto start = std::chrono::steady_clock::now();
  const StepResult done = trainer_.run_step(++step_, learning_rate_, *batches_, events);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return {.loss = done.loss, .milliseconds = taken.count()};
}

OpMeasurement TimedSteps::measure_ops(std::int64_t steps, const std::filesystem::path& file) {
  CHECK_INVARIANT(steps >= 1);
  OpTimes times(executor_->shared_program());
  Subscription listens = executor_->listen(times);
  std::vector<StepSplit> splits;
  for (std::int64_t i = 0; i < steps; ++i) {
    times.begin_step();
    trainer_.run_step(++step_, learning_rate_, *batches_);
    splits.push_back(times.end_step());
  }
  listens = {};
  times.write(file);
  const auto middle = splits.begin() + steps / 2;
  std::ranges::nth_element(splits, middle, {}, &StepSplit::total);
  return {.ops = times.rows(), .step = *middle};
}

}  // namespace trainscope
