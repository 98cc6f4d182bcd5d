// What a training step tells while it runs.
#pragma once

#include <cstdint>

#include "engine/exec/execution_events.h"

namespace trainscope {

struct Batch;

struct StepPlace {
  std::int64_t step = 0;         // from 1
  std::int64_t micro_batch = 0;  // from 0; of the update: their number
};

// Called by the thread that runs the step, at once and in order: first the step's own inputs; for
// each micro-batch the wait for its data, then its micro-step, which begins with its inputs and
// ends with its results; then the update, which ends with the step's. What a call throws ends the
// step.
class StepEvents {
 public:
  virtual ~StepEvents() = default;

  virtual void batch_wait_begin(const StepPlace& /*at*/) {}
  // What the batch source took: with data read ahead, how long the step had to wait for them.
  virtual void batch_wait_end(const StepPlace& /*at*/, double /*milliseconds*/) {}
  virtual void step_part_begin(StepPart /*part*/, const StepPlace& /*at*/) {}
  virtual void step_part_end(StepPart /*part*/, const StepPlace& /*at*/) {}
  // Inputs are looked up and copied into the program's memory: those of the step, or those of the
  // micro-batch.
  virtual void inputs_begin(const StepPlace& /*at*/) {}
  virtual void inputs_end(const StepPlace& /*at*/) {}
  // The loss and what else is told of a step is read, and behind the update added up.
  virtual void results_begin(const StepPlace& /*at*/) {}
  virtual void results_end(const StepPlace& /*at*/) {}
  // Within the results of the last micro-batch: other ranks are waited for, and the results of all
  // exchanged. Of a process that is alone neither is told.
  virtual void rank_wait_begin(const StepPlace& /*at*/) {}
  virtual void rank_wait_end(const StepPlace& /*at*/) {}
  // The loss of the micro-step that has just ended is no number: the step fails next.
  virtual void bad_loss(const StepPlace& /*at*/, const Batch& /*batch*/, double /*loss*/) {}
};

}  // namespace trainscope
