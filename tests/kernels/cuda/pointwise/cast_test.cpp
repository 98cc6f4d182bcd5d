// Conversions on CUDA between every two types that are not only stored: the CPU's bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

// What a type of this kind is tried with.
std::string_view numbers_for(DType dtype) {
  if (is_float(dtype)) return "{0,-0.5,1.5,127.7,-129,255,300.5,-40000,1e10,-1e20,nan,inf,-inf}";
  if (dtype == DType::kBool) return "{0,1,1,0,1,1,1,1,1,1,1,1,0}";
  if (name_of(dtype).starts_with('i')) return "{0,-1,2,-3,100,127,-128,9,11,-13,17,19,-23}";
  if (size_of(dtype) == 1) return "{0,1,2,3,100,127,7,9,11,13,17,19,23}";
  return "{0,1,2,3,100,127,128,255,256,300,65535,19,23}";
}

}  // namespace

TEST_CASE("cuda cast: every pair of types gives the CPU's bits") {
  const OpTable ops = standard_ops();
  const KernelTable kernels = cuda::own_kernels();
  const Evaluate reference = evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  int pairs = 0;
  for (const DType from : kAllDTypes) {
    for (const DType to : kAllDTypes) {
      if (is_storage(from) || is_storage(to)) continue;
      const std::string text =
          fmt::format("{}[13]={}; to={}", name_of(from), numbers_for(from), row_of(to).onnx_number);
      CAPTURE(text);
      const OpCase op_case(ops.get("Cast"), text, DType::kF32);
      const auto candidates = kernels_for(op_case, kernels);
      REQUIRE(candidates.size() == 1);
      const RunResult run = run_kernel(op_case, *candidates[0], {});
      CHECK(run.faults.empty());
      CHECK(same_bytes(run.outputs, reference(op_case.row(), op_case.example().attributes,
                                              op_case.input_pointers(), op_case.outputs())));
      ++pairs;
    }
  }
  CHECK(pairs == 13 * 13);
}

}  // namespace trainscope::test
