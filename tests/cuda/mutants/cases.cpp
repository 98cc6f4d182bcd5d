// Lets every case run with nobody who runs what it launches.
#include "tests/cuda/mutants/cases.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/cuda/mutants/wide_examples.h"
#include "tests/cuda/ptx/interpreted_run.h"

namespace trainscope::test {
namespace {

constexpr std::size_t kMostShiftedBytes = 16384;  // of small cases alone: the others take long
constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};

// Common names of the kernels that the case launches.
std::set<std::string> launched_by(const ptx::InterpretedKernels& ptx, const OpCase& op_case,
                                  const Kernel& kernel) {
  std::set<std::string> names;
  cuda::emulator::run_grids_by([&](const cuda::emulator::GridOfThreads& grid) {
    names.insert(ptx.common_name_of(grid.kernel));
  });
  (void)run_kernel(op_case, kernel, {});
  cuda::emulator::run_grids_by({});
  return names;
}

std::size_t bytes_of(const OpCase& op_case) {
  std::size_t bytes = 0;
  for (const Tensor& input : op_case.inputs()) bytes += input.bytes();
  for (const TensorType& output : op_case.outputs()) bytes += output.bytes();
  return bytes;
}

}  // namespace

RunResult CaseRun::through(ptx::InterpretedKernels& ptx) const {
  return run_interpreted(ptx, *op_case, *kernel, {.poison = 0xFF, .shifted = shifted});
}

Cases::Cases(const ptx::InterpretedKernels& ptx) : kernels_(cuda::own_kernels()) {
  for (const OpDef* row : ops_.rows()) {
    for (const std::string_view text : row->examples) {
      for (const DType type : kTypes) add(ptx, *row, text, type);
      add_with_f32_sums(ptx, *row, text);
    }
  }
  for (const WideExample& example : wide_examples()) {
    const OpDef* row = ops_.find(example.op);
    if (row == nullptr) row = ops_.find(example.op, kTrainscopeDomain);
    std::size_t launched = 0;
    for (const DType type : kTypes) {
      if (row != nullptr) launched += add(ptx, *row, example.text, type);
    }
    if (row != nullptr) launched += add_with_f32_sums(ptx, *row, example.text);
    if (launched == 0) {
      throw std::runtime_error("no kernel takes " + std::string(example.op) + " " + example.text);
    }
  }
  for (auto& [kernel, runs] : runs_) {
    std::ranges::stable_sort(runs, {}, &CaseRun::bytes);
    const std::vector<CaseRun> aligned = runs;
    for (CaseRun run : aligned) {
      if (run.bytes > kMostShiftedBytes) break;
      run.shifted = true;
      runs.push_back(run);
    }
  }
}

std::size_t Cases::add_with_f32_sums(const ptx::InterpretedKernels& ptx, const OpDef& row,
                                     std::string_view text) {
  const std::string typed = with_f32_sums(row.name, text);
  if (typed == text) return 0;
  std::size_t launched = 0;
  for (const DType type : {DType::kBF16, DType::kF16}) launched += add(ptx, row, typed, type);
  return launched;
}

std::size_t Cases::add(const ptx::InterpretedKernels& ptx, const OpDef& row, std::string_view text,
                       DType type) {
  std::unique_ptr<const OpCase> op_case;
  try {
    op_case = std::make_unique<const OpCase>(row, text, type);
  } catch (const Error&) {
    return 0;  // the row does not take the example in this type
  }
  std::size_t launched = 0;
  for (const Kernel* kernel : kernels_for(*op_case, kernels_)) {
    const std::set<std::string> names = launched_by(ptx, *op_case, *kernel);
    const bool has_texts = std::ranges::all_of(
        names, [&](const std::string& name) { return ptx.places().contains(name); });
    if (!has_texts) continue;
    launched += names.size();
    for (const std::string& name : names) {
      runs_[name].push_back(
          {.op_case = op_case.get(), .kernel = kernel, .bytes = bytes_of(*op_case)});
    }
  }
  if (launched != 0) op_cases_.push_back(std::move(op_case));
  return launched;
}

std::vector<CaseRun> Cases::runs_of(std::string_view kernel) const {
  const auto found = runs_.find(kernel);
  return found == runs_.end() ? std::vector<CaseRun>() : found->second;
}

}  // namespace trainscope::test
