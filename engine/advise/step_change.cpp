// A change as options of the compiler.
#include "engine/advise/step_change.h"

namespace trainscope {
namespace {

void change_batch(TrainRequest& step, SizeRequest sizes, std::int64_t batch) {
  sizes.batch = batch;
  const Sizes settled = resolve_sizes(step.model, sizes);
  step.compile.import.dims = settled.dims;
  step.compile.import.shapes = settled.shapes;
  step.batch = settled.batch;
  step.batch_axes = settled.batch_axes;
}

void change_recompute(CompileOptions& options, const StepChange& change) {
  if (!change.budget_bytes && !change.max_overhead) return;
  options.recompute.mode = RecomputeMode::kAuto;
  options.recompute.budget_bytes = change.budget_bytes;
  options.recompute.max_overhead = change.max_overhead;
  if (change.offload) options.recompute.link = options.machine.host_link;
}

}  // namespace

TrainRequest changed(TrainRequest step, const SizeRequest& sizes, const StepChange& change) {
  if (change.batch) change_batch(step, sizes, *change.batch);
  CompileOptions& options = step.compile;
  change_recompute(options, change);
  TrainingOptions& training = options.training;
  if (change.micro_batches) training.micro_batches = *change.micro_batches;
  if (change.loss_chunks) training.loss_chunks = *change.loss_chunks;
  if (change.precision) training.precision = *change.precision;
  if (change.skip_ignored) training.skip_ignored = true;
  if (change.optimizer_in_backward) training.optimizer.in_backward = true;
  if (change.threads) options.lower.threads = *change.threads;
  return step;
}

}  // namespace trainscope
