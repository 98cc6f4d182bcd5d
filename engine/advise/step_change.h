// What may be changed of a step so that it needs less memory or less time.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/model_sizes.h"
#include "engine/run/train_request.h"

namespace trainscope {

// What is left out stays as the step has it.
struct StepChange {
  std::optional<std::int64_t> batch = {};          // examples of a micro-batch
  std::optional<std::int64_t> micro_batches = {};  // of a step
  std::optional<std::int64_t> loss_chunks = {};
  std::optional<std::int64_t> budget_bytes = {};  // the most of the arena, at the least time
  std::optional<double> max_overhead = {};  // the least arena, at so much more time: 0.1 is 10 %
  std::optional<StepPrecision> precision = {};
  std::optional<int> threads = {};
  bool offload = false;
  bool optimizer_in_backward = false;
  bool skip_ignored = false;  // masked-label compaction

  bool operator==(const StepChange&) const = default;
};

// The step with the change. `sizes` is what was asked for when those of the step were settled: one
// of another batch keeps to it. Throws kUsage for a batch that the model does not take.
TrainRequest changed(TrainRequest step, const SizeRequest& sizes, const StepChange& change);

}  // namespace trainscope
