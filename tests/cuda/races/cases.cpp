// Lets every case run with nobody who runs what it launches.
#include "tests/cuda/races/cases.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/cuda/interpreter/kernel_symbols.h"
#include "tests/cuda/mutants/wide_examples.h"
#include "tests/cuda/races/several_blocks.h"

namespace trainscope::test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
constexpr DType kTwoBytes[] = {DType::kBF16, DType::kF16};
constexpr std::uint64_t kSeveral = 2;  // blocks, between which there can be races

std::uint64_t count_of(const dim3& size) { return std::uint64_t{size.x} * size.y * size.z; }

RaceCase launched_by(const OpCase& op_case, const Kernel& kernel) {
  static const ptx::ProgramSymbols symbols;
  RaceCase result{.op_case = &op_case, .kernel = &kernel, .launched = {}};
  std::map<std::string, std::uint64_t> most;
  cuda::emulator::run_grids_by([&](const cuda::emulator::GridOfThreads& grid) {
    const std::uint64_t blocks = count_of(grid.blocks);
    std::uint64_t& known = most[std::string(symbols.name_of(grid.kernel))];
    known = std::max(known, blocks);
    result.threads += blocks * count_of(grid.threads);
  });
  (void)run_kernel(op_case, kernel, {});
  cuda::emulator::run_grids_by({});
  for (const auto& [symbol, blocks] : most) {
    if (symbol.empty()) throw std::runtime_error(op_case.name() + " launches what has no name");
    result.launched.push_back({.symbol = symbol, .blocks = blocks});
  }
  return result;
}

// Whether a stands for a kernel better than b, of which they launch so many blocks.
bool is_better(const RaceCase& a, std::uint64_t blocks_of_a, const RaceCase& b,
               std::uint64_t blocks_of_b) {
  const bool several_of_a = blocks_of_a >= kSeveral;
  const bool several_of_b = blocks_of_b >= kSeveral;
  return several_of_a != several_of_b ? several_of_a : a.threads < b.threads;
}

}  // namespace

RaceCases::RaceCases() : kernels_(cuda::own_kernels()) {
  for (const OpDef* row : ops_.rows()) {
    for (const std::string_view text : row->examples) add_in_all_types(*row, text);
  }
  std::vector<WideExample> several = wide_examples();
  for (WideExample& example : several_blocks()) several.push_back(std::move(example));
  for (const WideExample& example : several) {
    const OpDef* row = ops_.find(example.op);
    if (row == nullptr) row = ops_.find(example.op, kTrainscopeDomain);
    if (row == nullptr || !add_in_all_types(*row, example.text)) {
      throw std::runtime_error("no kernel takes " + std::string(example.op) + " " + example.text);
    }
  }
}

bool RaceCases::add_in_all_types(const OpDef& row, std::string_view text) {
  bool launches = false;
  for (const DType type : kTypes) launches |= add(row, text, type);
  const std::string typed = with_f32_sums(row.name, text);
  if (typed == text) return launches;
  for (const DType type : kTwoBytes) launches |= add(row, typed, type);
  return launches;
}

bool RaceCases::add(const OpDef& row, std::string_view text, DType type) {
  std::unique_ptr<const OpCase> op_case;
  try {
    op_case = std::make_unique<const OpCase>(row, text, type);
  } catch (const Error&) {
    return false;  // the row does not take the example in this type
  }
  bool launches = false;
  for (const Kernel* kernel : kernels_for(*op_case, kernels_)) {
    RaceCase added = launched_by(*op_case, *kernel);
    if (added.launched.empty()) continue;  // copies of whole tensors
    cases_.push_back(std::move(added));
    launches = true;
  }
  if (launches) op_cases_.push_back(std::move(op_case));
  return launches;
}

std::vector<RaceCase> RaceCases::one_for_each_kernel() const {
  struct Best {
    std::size_t number = 0;  // of the case
    std::uint64_t blocks = 0;
  };
  std::map<std::string_view, Best> best;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    for (const Launched& each : cases_[i].launched) {
      const auto [found, added] =
          best.try_emplace(each.symbol, Best{.number = i, .blocks = each.blocks});
      Best& known = found->second;
      if (!added && is_better(cases_[i], each.blocks, cases_[known.number], known.blocks)) {
        known = {.number = i, .blocks = each.blocks};
      }
    }
  }
  std::vector<std::size_t> chosen;
  for (const auto& [symbol, of_symbol] : best) chosen.push_back(of_symbol.number);
  std::ranges::sort(chosen);
  const auto rest = std::ranges::unique(chosen);
  chosen.erase(rest.begin(), rest.end());
  std::vector<RaceCase> result;
  for (const std::size_t number : chosen) result.push_back(cases_[number]);
  return result;
}

}  // namespace trainscope::test
