// compare's table of tensors: a row a tensor of A, with what each of the others has of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/compare/replayed_steps.h"
#include "profiler/numerics/tensor_comparison.h"

namespace trainscope {

// A beside another trace.
struct TracePair {
  std::string name;  // of the other: "B", "C"
  const profiler::Trace& other;
  profiler::TensorComparison both;
  std::vector<StepLimits> limits;  // of the steps that both have
};

// Those most over their limits first, `top` of them; where any of these has it also what is not
// finite, errors of all elements, and how far each engine is from the truth in f64.
std::string tensor_table(const profiler::Trace& a, const std::vector<TracePair>& pairs,
                         std::size_t top);

}  // namespace trainscope
