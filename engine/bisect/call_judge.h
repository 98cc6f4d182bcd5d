// A result of a kernel beside the reference kernel's and f64's of the same inputs.
#pragma once

#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/builder.h"

namespace trainscope {

struct JudgedResult {
  double error = 0.0;  // relative to the norm of the exact result
  double limit = 0.0;
  bool is_fault() const { return error > limit; }
};

// `plain`: what the reference kernel makes; `exact`: the same in f64, null where there is no such
// kernel. The limit is 16 times the error of `plain`, or of the rounding of its type: kernels that
// transform round more. Results of integers must be equal.
JudgedResult judged_result(const Tensor& chosen, const Tensor& plain, const Tensor* exact);

// What the reference kernel makes of these inputs (null: left out) in f64; empty: there is none.
std::vector<Tensor> exact_results(const Node& node, const std::vector<const Tensor*>& inputs,
                                  const Evaluate& reference);

}  // namespace trainscope
