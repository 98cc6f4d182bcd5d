// The op suite's examples through the PTX of the CUDA kernels: the emulator's bits, no byte beside
// the operands, no race in shared memory; and what ships, within each op's limit.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/cuda/ptx/interpreted_case.h"

namespace trainscope::test {
namespace {

// Whose PTX the build leaves out, and copies of whole tensors, which run no threads.
const std::set<std::string_view> kLeftOut{"attention.cuda", "attention_grad.cuda"};
const std::set<std::string_view> kCopies{"offload.cuda", "fetch.cuda", "bit_cast.cuda"};

// Null where the row does not take the example's inputs in this type.
std::unique_ptr<const OpCase> case_of(const OpDef& row, std::string_view text, DType float_type) {
  try {
    return std::make_unique<const OpCase>(row, text, float_type);
  } catch (const Error&) {
    return nullptr;
  }
}

struct Tables {
  OpTable ops = standard_ops();
  KernelTable kernels = cuda::own_kernels();
};

// Calls check(case, kernel, text, result) for every example of every op in this type, with every
// kernel that there is PTX of. Gives the kernels that ran instructions.
template <typename F>
std::set<std::string_view> for_each_run(ptx::InterpretedKernels& ptx, const Tables& tables,
                                        DType float_type, F check) {
  std::set<std::string_view> ran;
  for (const OpDef* row : tables.ops.rows()) {
    for (const std::string_view text : row->examples) {
      const auto op_case = case_of(*row, text, float_type);
      if (op_case == nullptr) continue;
      for (const Kernel* kernel : kernels_for(*op_case, tables.kernels)) {
        INFO(op_case->name(), ", ", kernel->name);
        const std::int64_t before = ptx.machine().counters().instructions;
        try {
          const RunResult result = run_interpreted(ptx, *op_case, *kernel, {});
          for (const std::string& fault : result.faults) FAIL_CHECK(fault);
          check(*op_case, *kernel, text, result);
        } catch (const ptx::NoText&) {
          continue;
        } catch (const std::runtime_error& error) {
          FAIL_CHECK(std::string(error.what()));
        }
        if (ptx.machine().counters().instructions > before) ran.insert(kernel->name);
      }
    }
  }
  for (const std::string& race : ptx.machine().races()) FAIL_CHECK("race: ", race);
  return ran;
}

std::set<std::string_view> compare_with_emulator(ptx::InterpretedKernels& ptx, const Tables& tables,
                                                 DType float_type) {
  return for_each_run(
      ptx, tables, float_type,
      [](const OpCase& op_case, const Kernel& kernel, std::string_view, const RunResult& got) {
        const RunResult want = run_kernel(op_case, kernel, {});
        CHECK(same_values(got.outputs, want.outputs));
      });
}

}  // namespace

TEST_CASE("ptx: kernels give the emulator's bits on the op suite's examples") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  const Tables tables;
  const std::set<std::string_view> ran = compare_with_emulator(*ptx, tables, DType::kF32);
  for (const KernelTable::Row& row : tables.kernels.rows()) {
    if (row.dtype != DType::kF32 || kCopies.contains(row.kernel.name)) continue;
    CHECK_MESSAGE(ran.contains(row.kernel.name) != kLeftOut.contains(row.kernel.name),
                  row.kernel.name);
  }
}

TEST_CASE("ptx: kernels of other float types give the emulator's bits") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  const Tables tables;
  for (const DType type : {DType::kF64, DType::kBF16, DType::kF16}) {
    CHECK(!compare_with_emulator(*ptx, tables, type).empty());
  }
}

TEST_CASE("ptx: what ships stays within each op's limit of the f64 reference") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kShipped);
  if (ptx == nullptr) return;
  const Tables tables;
  const Evaluate reference =
      evaluator(tables.ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  const std::set<std::string_view> ran = for_each_run(
      *ptx, tables, DType::kF32,
      [&](const OpCase& op_case, const Kernel&, std::string_view text, const RunResult& got) {
        const OpCase exact(op_case.row(), text, DType::kF64);
        const std::vector<Tensor> want = reference(exact.row(), exact.example().attributes,
                                                   exact.input_pointers(), exact.outputs());
        REQUIRE(got.outputs.size() == want.size());
        for (std::size_t k = 0; k < want.size(); ++k) {
          const double error = relative_error(got.outputs[k], want[k]);
          CHECK_MESSAGE(error <= op_case.row().tolerance_f32, "output ", k, ": ", error);
        }
      });
  for (const std::string_view kernel : {"softmax.cuda", "layer_norm.cuda", "gelu.cuda"}) {
    CHECK_MESSAGE(ran.contains(kernel), kernel, " did not run");
  }
}

}  // namespace trainscope::test
