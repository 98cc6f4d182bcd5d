// One example text on every CUDA kernel that takes it, in the emulator.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

// Against the CPU's reference in f64, within the op's limit of f32, and the same bits in another
// order of threads on other memory.
inline void check_kernels(std::string_view op, std::string_view text) {
  static const OpTable ops = standard_ops();
  static const KernelTable kernels = cuda::own_kernels();
  static const Evaluate reference =
      evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  INFO(op, " \"", text, "\"");
  const OpDef* row = ops.find(op);
  if (row == nullptr) row = ops.find(op, kTrainscopeDomain);
  REQUIRE(row != nullptr);
  const OpCase op_case(*row, text, DType::kF32);
  const OpCase exact(*row, text, DType::kF64);
  const std::vector<Tensor> want =
      reference(*row, exact.example().attributes, exact.input_pointers(), exact.outputs());
  const auto candidates = kernels_for(op_case, kernels);
  CHECK(!candidates.empty());
  for (const Kernel* kernel : candidates) {
    const RunResult run = run_kernel(op_case, *kernel, {});
    for (const std::string& fault : run.faults) FAIL_CHECK(fault);
    REQUIRE(run.outputs.size() == want.size());
    for (std::size_t k = 0; k < want.size(); ++k) {
      const double error = relative_error(run.outputs[k], want[k]);
      CHECK_MESSAGE(error <= row->tolerance_f32, "output ", k, ": relative error ", error);
    }
    cuda::emulator::set_seed(7);
    const RunResult again = run_kernel(op_case, *kernel, {.poison = 0xFF});
    cuda::emulator::set_seed(0);
    CHECK(same_bytes(run.outputs, again.outputs));
  }
}

}  // namespace trainscope::test
