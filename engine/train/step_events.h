// What a training step tells while it runs.
#pragma once

#include <cstdint>

namespace trainscope {

// The phases of a step as a trainer runs them: forward and backward of a micro-batch are one.
enum class StepPhase : std::uint8_t { kForwardBackward, kUpdate };

struct StepPlace {
  std::int64_t step = 0;         // from 1
  std::int64_t micro_batch = 0;  // from 0; of the update: their number
};

// Called by the thread that runs the step, at once and in order: for each micro-batch the wait for
// its data, then its phase; then the update. What a call throws ends the step.
class StepEvents {
 public:
  virtual ~StepEvents() = default;

  virtual void batch_wait_begin(const StepPlace& /*at*/) {}
  // What the batch source took: with data read ahead, how long the step had to wait for them.
  virtual void batch_wait_end(const StepPlace& /*at*/, double /*milliseconds*/) {}
  virtual void phase_begin(StepPhase /*phase*/, const StepPlace& /*at*/) {}
  virtual void phase_end(StepPhase /*phase*/, const StepPlace& /*at*/) {}
};

}  // namespace trainscope
