// A run of a kernel on a case of the op suite, through PTX.
#pragma once

#include <vector>

#include "tests/cuda/interpreter/interpreted_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

// Within the bytes of the operands and of the workspace: ptx::Fault is thrown elsewhere.
RunResult run_interpreted(ptx::InterpretedKernels& kernels, const OpCase& op_case,
                          const Kernel& kernel, const RunOptions& options);

// The same bits, but for those of a NaN.
bool same_values(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace trainscope::test
