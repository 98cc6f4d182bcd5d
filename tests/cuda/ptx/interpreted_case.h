// A kernel's run on a case of the op suite, through PTX.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/cuda/interpreter/interpreted_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

// PTX that the build made: with the emulator's arithmetic, or as it ships.
enum class Texts : std::uint8_t { kStrict, kShipped };
// Null, with a line, where there is no nvcc.
ptx::InterpretedKernels* built_kernels(Texts texts);

// Within the bytes of the operands and of the workspace: ptx::Fault is thrown elsewhere.
RunResult run_interpreted(ptx::InterpretedKernels& kernels, const OpCase& op_case,
                          const Kernel& kernel, const RunOptions& options);

// An op's kernels that take the example, the preferred one first.
struct KernelCase {
  std::unique_ptr<const OpCase> op_case;
  std::vector<const Kernel*> kernels;
};
KernelCase kernel_case(std::string_view op, std::string_view text, DType type = DType::kF32);

// The same bits, but for those of a NaN.
bool same_values(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace trainscope::test
