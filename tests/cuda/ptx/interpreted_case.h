// PTX that this build made, and cases of the op suite with the kernels that take them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/cuda/ptx/interpreted_run.h"

namespace trainscope::test {

// PTX that the build made: with the emulator's arithmetic, or as it ships.
enum class Texts : std::uint8_t { kStrict, kShipped };
// Null, with a line, where there is no nvcc.
ptx::InterpretedKernels* built_kernels(Texts texts);

// An op's kernels that take the example, the preferred one first.
struct KernelCase {
  std::unique_ptr<const OpCase> op_case;
  std::vector<const Kernel*> kernels;
};
KernelCase kernel_case(std::string_view op, std::string_view text, DType type = DType::kF32);

}  // namespace trainscope::test
