// Values, bytes written, repetitions, captured runs, in-place runs, operands that are not aligned.
#include "tests/device/op_examples_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/exec/backends.h"

namespace trainscope::test {
namespace {

constexpr double kToleranceF64 = 1e-11;
constexpr DType kFloatTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};

double limit_of(const OpDef& row, DType float_type) {
  if (float_type == DType::kF32) return row.tolerance_f32;
  if (float_type == DType::kF64) return kToleranceF64;
  return float_type == DType::kBF16 ? 0x1p-7 : 0x1p-10;  // the distance of neighbours
}

// Null where the row does not take the example in this type.
std::unique_ptr<const OpCase> case_of(const SuiteCase& suite_case, DType float_type) {
  try {
    return std::make_unique<const OpCase>(*suite_case.row, suite_case.text, float_type);
  } catch (const Error&) {
    return nullptr;
  }
}

// As many pairs of in_place() as go together.
std::vector<InPlace> pairs_together(const OpCase& op_case) {
  std::vector<InPlace> together;
  std::set<int> outputs;
  std::set<int> inputs;
  for (const InPlace& pair : op_case.in_place()) {
    if (outputs.insert(pair.output).second && inputs.insert(pair.input).second) {
      together.push_back(pair);
    }
  }
  return together;
}

}  // namespace

std::vector<SuiteCase> suite_cases(const OpTable& ops, std::string_view only) {
  std::vector<SuiteCase> cases;
  std::size_t rounds = 0;
  for (const OpDef* row : ops.rows()) rounds = std::max(rounds, row->examples.size());
  for (const DType type : kFloatTypes) {
    for (std::size_t round = 0; round < rounds; ++round) {
      for (const OpDef* row : ops.rows()) {
        if (round >= row->examples.size() || (!only.empty() && row->name != only)) continue;
        cases.push_back({.row = row, .text = row->examples[round], .float_type = type});
      }
    }
  }
  return cases;
}

ExampleSuite::ExampleSuite(Device& device, const OpTable& ops)
    : pool_(device),
      reference_(evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference})) {}

std::vector<SuiteRow> ExampleSuite::run(const SuiteCase& suite_case) {
  std::vector<SuiteRow> rows;
  const auto op_case = case_of(suite_case, suite_case.float_type);
  if (op_case == nullptr) return rows;
  const std::vector<const Kernel*> kernels = kernels_for(*op_case, pool_.device().kernels());
  if (kernels.empty()) return rows;
  const std::vector<Tensor> want = wanted(suite_case, *op_case);
  for (const Kernel* kernel : kernels) {
    SuiteRow row{.op = std::string(suite_case.row->name),
                 .kernel = std::string(kernel->name),
                 .dtype = std::string(name_of(suite_case.float_type)),
                 .example = std::string(suite_case.text),
                 .limit = limit_of(*suite_case.row, suite_case.float_type)};
    check_first_run(*op_case, *kernel, want, row);
    const bool held = !want.empty() || is_stored_only(suite_case.float_type);
    if (!held) row.faults.emplace_back("the CPU has nothing to compare with");
    if (row.faults.empty()) check_repetitions(*op_case, *kernel, row);
    rows.push_back(std::move(row));
    if (rows.back().device_lost) break;
  }
  return rows;
}

// f32 and f64 are held against f64, types of two bytes against the CPU's in the same type.
std::vector<Tensor> ExampleSuite::wanted(const SuiteCase& suite_case, const OpCase& op_case) const {
  const auto exact = case_of(suite_case, DType::kF64);
  const OpCase& oracle = is_stored_only(suite_case.float_type) || !exact ? op_case : *exact;
  return reference_(oracle.row(), oracle.example().attributes, oracle.input_pointers(),
                    oracle.outputs());
}

DeviceRunResult ExampleSuite::run_once(const OpCase& op_case, const Kernel& kernel,
                                       const DeviceRunOptions& options, std::string_view what,
                                       SuiteRow& row) {
  DeviceRunResult result = run_on_device(pool_, op_case, kernel, options);
  for (const std::string& fault : result.faults) {
    row.faults.push_back(fmt::format("{}: {}", what, fault));
  }
  if (result.status.done()) return result;
  row.faults.push_back(fmt::format("{}: {}", what, result.status.message));
  row.device_lost = !wait_for_all(pool_.device()).done();
  return result;
}

void ExampleSuite::compare(const std::vector<Tensor>& got, const std::vector<Tensor>& want,
                           std::string_view what, SuiteRow& row) const {
  for (std::size_t k = 0; k < std::min(got.size(), want.size()); ++k) {
    const double error = relative_error(got[k], want[k]);
    row.error = std::max(row.error, error);
    if (error <= row.limit) continue;
    row.faults.push_back(fmt::format("{}: output {} is off by {:.3e}, the limit is {:.3e}", what, k,
                                     error, row.limit));
  }
}

void ExampleSuite::check_first_run(const OpCase& op_case, const Kernel& kernel,
                                   const std::vector<Tensor>& want, SuiteRow& row) {
  DeviceRunResult result = run_once(op_case, kernel, {}, "first run", row);
  first_ = std::move(result.outputs);
  if (!result.status.done()) return;
  compare(first_, want, "first run", row);
}

void ExampleSuite::check_repetitions(const OpCase& op_case, const Kernel& kernel, SuiteRow& row) {
  std::vector<std::pair<std::string_view, DeviceRunOptions>> runs = {
      {"over NaN", {.poison = std::byte{0xFF}}}, {"captured", {.captured = true}}};
  if (std::vector<InPlace> pairs = pairs_together(op_case); !pairs.empty()) {
    runs.emplace_back("in place", DeviceRunOptions{.in_place = std::move(pairs)});
  }
  for (const auto& [what, options] : runs) {
    const DeviceRunResult again = run_once(op_case, kernel, options, what, row);
    if (row.device_lost) return;
    if (again.status.done() && !same_bytes(first_, again.outputs)) {
      row.faults.push_back(fmt::format("{}: other bits than the first run", what));
    }
  }
  // Other instructions may do it there, so that last bits may differ.
  const std::vector<Tensor> first = first_;
  const DeviceRunResult shifted = run_once(op_case, kernel, {.shifted = true}, "not aligned", row);
  if (shifted.status.done()) compare(shifted.outputs, first, "not aligned", row);
}

}  // namespace trainscope::test
