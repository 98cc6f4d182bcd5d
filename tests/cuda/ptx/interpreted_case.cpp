// PTX of this build, and examples by op and text.
#include "tests/cuda/ptx/interpreted_case.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string_view>

#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/own_kernels.h"

namespace trainscope::test {

ptx::InterpretedKernels* built_kernels(Texts texts) {
  const std::filesystem::path folder = TRAINSCOPE_PTX;
  if (folder.empty()) {
    MESSAGE("skipped: there is no nvcc to make PTX");
    return nullptr;
  }
  if (texts == Texts::kShipped) {
    static ptx::InterpretedKernels shipped(folder / "shipped");
    return &shipped;
  }
  static ptx::InterpretedKernels strict(folder / "strict");
  return &strict;
}

KernelCase kernel_case(std::string_view op, std::string_view text, DType type) {
  static const OpTable ops = standard_ops();
  static const KernelTable kernels = cuda::own_kernels();
  const OpDef* row = ops.find(op);
  if (row == nullptr) row = ops.find(op, kTrainscopeDomain);
  REQUIRE(row != nullptr);
  KernelCase found{.op_case = std::make_unique<const OpCase>(*row, text, type), .kernels = {}};
  found.kernels = kernels_for(*found.op_case, kernels);
  REQUIRE(!found.kernels.empty());
  return found;
}

}  // namespace trainscope::test
