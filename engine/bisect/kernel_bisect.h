// Which call is computed wrong by the kernel that is chosen for it: each node by that kernel and by
// the reference kernel, on the same inputs, beside f64.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/compile.h"

namespace trainscope {

struct KernelFault {
  std::string op = {};
  std::string node = {};    // in the step's graph
  std::string source = {};  // in the model
  std::string kernel = {};
  std::string value = {};
  Phase phase = Phase::kForward;
  double error = 0.0;  // relative to the norm of the exact result
  double limit = 0.0;
};

struct KernelBisect {
  std::vector<KernelFault> faults = {};  // in order
  std::int64_t calls = 0;                // that were compared
  std::int64_t inexact = 0;  // of them without a kernel for f64: beside the reference alone
  // The largest error over its limit of all calls, and of which.
  double most = 0.0;
  std::string most_of = {};
};

// Of a step's graph, by kernels of this table. The limit of an error is 16 times that of the
// reference kernel, or of the rounding of its type: kernels that transform round more. `inputs` by
// name; parameters and states begin as the graph has them.
KernelBisect bisect_kernels(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                            const KernelTable& kernels, KernelChoice choice, int threads);

}  // namespace trainscope
