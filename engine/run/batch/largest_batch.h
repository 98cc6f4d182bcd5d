// The largest batch of a step within its budget, with recomputation and without.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/compile.h"

namespace trainscope {

// What to compile for a batch, with a budget.
struct StepToCompile {
  OnnxModel model;
  CompileOptions options;
};
using StepOfBatch = std::function<StepToCompile(std::int64_t batch)>;

struct LargestBatch {
  std::int64_t plain = 0;  // examples that fit without recomputation; 0: not even one
  std::int64_t most = 0;   // ... with it
  double overhead = 0.0;   // predicted time of that one's step by the time without it, less 1
};

// Compiles as few steps as can be. What compile() throws ends the search, except NoPlanFits.
LargestBatch find_largest_batch(const StepOfBatch& step_of);

}  // namespace trainscope
