// Placement problems of whole training steps: a forward graph, its backward pass, recomputation.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/problem.h"

namespace trainscope::memplan::testing {

// One operation of a forward pass, in order of execution, and what its gradient needs.
struct ForwardOp {
  std::int64_t bytes = 0;                // of its value
  std::vector<int> reads = {};           // earlier operations
  std::vector<int> gradient_reads = {};  // whose values the gradient needs; itself is allowed
  std::int64_t workspace_bytes = 0;      // alive during the operation, and during its gradient
  std::int64_t parameter_bytes = 0;      // whose gradient stays until the end of the step
  bool saved = true;  // false: forgotten after the forward pass, recomputed when needed
};

// The buffers of one step. Gradients of values with several readers are added up one by one.
Problem training_step(const std::vector<ForwardOp>& forward);

// A random network of about `buffers` buffers: chains with residual branches that join again,
// sizes over three orders of magnitude, some operations with workspace.
Problem branching_problem(int buffers, std::uint64_t seed);

// GPT with attention matrices, batch 8 x 1024 tokens, 16 heads, width 1024, 50304 words, 2 bytes a
// number. `forgotten` of 0..kGptPlans says how much is recomputed: cheap values first, each
// kind from the first layer on; kGptPlans keeps only the layers' inputs.
inline constexpr int kGptPlans = 100;
Problem gpt_problem(int layers, int forgotten);

}  // namespace trainscope::memplan::testing
