// Which cases of the op suite run a kernel of the PTX.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/standard_ops.h"
#include "kernels/api/kernel.h"
#include "tests/cuda/interpreter/interpreted_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

// An example in one float type, on one of the kernels that take it.
struct CaseRun {
  const OpCase* op_case = nullptr;
  const Kernel* kernel = nullptr;
  std::size_t bytes = 0;  // of inputs and outputs
  bool shifted = false;   // these begin one element behind where packs of them may

  RunResult through(ptx::InterpretedKernels& ptx) const;
};

// Every example of every op row, and the wide ones, in f32, f64, bf16 and f16.
class Cases {
 public:
  // Nothing is computed: what a case launches follows from its shapes. Cases that launch something
  // that there is no PTX of are left out. Throws std::runtime_error where a wide example has none.
  explicit Cases(const ptx::InterpretedKernels& ptx);

  // Those that launch the kernel of this common name, the smallest first, and small ones
  // again with shifted operands.
  std::vector<CaseRun> runs_of(std::string_view kernel) const;

 private:
  // The number of kernels of the PTX that the example launches in this type.
  std::size_t add(const ptx::InterpretedKernels& ptx, const OpDef& row, std::string_view text,
                  DType type);
  // ... in the types of two bytes, with sums and statistics in f32.
  std::size_t add_with_f32_sums(const ptx::InterpretedKernels& ptx, const OpDef& row,
                                std::string_view text);

  OpTable ops_ = standard_ops();
  KernelTable kernels_;
  std::vector<std::unique_ptr<const OpCase>> op_cases_;
  std::map<std::string, std::vector<CaseRun>, std::less<>> runs_;  // by a kernel's common name
};

}  // namespace trainscope::test
