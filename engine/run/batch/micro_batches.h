// The size of micro-batches as something to plan: how to split the examples of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/compile.h"

namespace trainscope {

// Examples of a step, as a number of micro-batches of so many each.
struct BatchSplit {
  std::int64_t batch = 0;
  std::int64_t micro_batches = 0;

  std::int64_t examples() const { return batch * micro_batches; }
};

// Compiles the step of a split. Fails with NoPlanFits when no plan is within the budget.
using CompileSplit = std::function<std::unique_ptr<Compiled>(const BatchSplit&)>;

struct SplitPlan {
  std::int64_t arena_bytes = 0;
  double seconds = 0.0;             // of a whole step, by the model of the machine
  std::int64_t rematerialized = 0;  // nodes that run a second time
};

// A split, and its plan; none: no plan fits.
struct PlannedSplit {
  BatchSplit split;
  std::optional<SplitPlan> plan;
};

struct PlannedSplits {
  std::vector<PlannedSplit> all;  // from one micro-batch to as many as there are examples
  PlannedSplit quickest;          // of those that fit
};

// Every split of the examples of `asked` into equal micro-batches. Fails with kOutOfMemory when
// none has a plan that fits.
PlannedSplits plan_splits(const CompileSplit& compile_split, const BatchSplit& asked,
                          const Machine& machine);

}  // namespace trainscope
