// Runs mutants on the cases of their kernel, the smallest first, until one shows.
#include "tests/cuda/mutants/gate.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tests/cuda/ptx/interpreted_run.h"

namespace trainscope::test {
namespace {

// A mutant that takes so many times the instructions of the kernel, and some more, goes round in
// circles: a check of one thread in a block turns all others away.
constexpr std::int64_t kMostTimes = 256;
constexpr std::int64_t kSomeMore = 1'000'000;

// Blocks more than a kernel is launched with: threads that go round once do so twice in a smaller
// grid, and all work is taken in a larger one.
constexpr std::array<int, 2> kMoreBlocks{-1, 1};
constexpr int kCasesInOtherGrids = 4;

constexpr std::array<std::string_view, 3> kKinds{"barrier", "wait", "bound"};

std::string_view kind_name(ptx::MutantKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

void print(const ptx::InterpretedKernels::Place& place, const ptx::Mutant& mutant,
           const Verdict& verdict) {
  const ptx::Instruction& instruction = place.kernel().code[mutant.place];
  std::string line(kind_name(mutant.kind));
  const auto add = [&](std::string_view column) {
    line += '\t';
    line += column;
  };
  add(verdict.caught ? "caught" : "survived");
  add(verdict.how);
  add(place.module->source_path(instruction));
  add(std::to_string(instruction.source_line));
  add(place.name);
  add(place.module->name() + ":" + std::to_string(instruction.line));
  std::puts(line.c_str());
}

}  // namespace

MutationGate::MutationGate(const std::filesystem::path& folder) : ptx_(folder), cases_(ptx_) {
  for (const auto& [name, place] : ptx_.places()) {
    Target target{.name = name,
                  .place = &place,
                  .runs = cases_.runs_of(name),
                  .mutants = ptx::mutants_of(place.kernel())};
    if (!target.mutants.empty()) targets_.push_back(std::move(target));
  }
}

void MutationGate::choose(std::size_t count, std::uint64_t seed) {
  using Number = std::pair<std::size_t, std::size_t>;  // of the target, and of its mutant
  std::array<std::vector<Number>, kKinds.size()> left;
  for (std::size_t target = 0; target < targets_.size(); ++target) {
    const std::vector<ptx::Mutant>& mutants = targets_[target].mutants;
    for (std::size_t i = 0; i < mutants.size(); ++i) {
      left[static_cast<std::size_t>(mutants[i].kind)].emplace_back(target, i);
    }
  }
  std::mt19937_64 random(seed);
  std::set<Number> chosen;
  while (chosen.size() < count) {
    const std::size_t before = chosen.size();
    for (std::vector<Number>& of_kind : left) {
      if (of_kind.empty() || chosen.size() == count) continue;
      std::swap(of_kind[static_cast<std::size_t>(random() % of_kind.size())], of_kind.back());
      chosen.insert(of_kind.back());
      of_kind.pop_back();
    }
    if (chosen.size() == before) break;
  }
  std::vector<Target> all = std::exchange(targets_, {});
  for (std::size_t target = 0; target < all.size(); ++target) {
    const std::vector<ptx::Mutant> mutants = std::exchange(all[target].mutants, {});
    const auto end = chosen.lower_bound({target + 1, 0});
    for (auto each = chosen.lower_bound({target, 0}); each != end; ++each) {
      all[target].mutants.push_back(mutants[each->second]);
    }
    if (!all[target].mutants.empty()) targets_.push_back(std::move(all[target]));
  }
}

void MutationGate::keep_named(std::string_view text) {
  std::erase_if(targets_, [&](const Target& target) {
    return target.place->name.find(text) == std::string_view::npos;
  });
}

void MutationGate::keep_part(std::size_t part, std::size_t parts) {
  std::vector<Target> kept;
  for (std::size_t i = part; i < targets_.size(); i += parts)
    kept.push_back(std::move(targets_[i]));
  targets_ = std::move(kept);
}

void MutationGate::run() {
  for (const Target& target : targets_) run(target);
}

void MutationGate::run(const Target& target) {
  std::vector<Verdict> verdicts(target.mutants.size());
  const std::string_view none = target.runs.empty() ? "no example launches it" : "never reached";
  for (Verdict& verdict : verdicts) verdict.how = none;
  const auto all_caught = [&] { return std::ranges::all_of(verdicts, &Verdict::caught); };
  for (const CaseRun& each : target.runs) {
    if (all_caught()) break;
    run(target, each, 0, verdicts);
  }
  for (const int more_blocks : kMoreBlocks) {
    int cases = 0;
    for (const CaseRun& each : target.runs) {
      if (all_caught() || cases == kCasesInOtherGrids) break;
      if (!takes_grid(target, each, more_blocks)) continue;
      run(target, each, more_blocks, verdicts);
      ++cases;
    }
  }
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    print(*target.place, target.mutants[i], verdicts[i]);
  }
}

// On one case, those that no case before has shown and that do something else there.
void MutationGate::run(const Target& target, const CaseRun& each, int more_blocks,
                       std::vector<Verdict>& verdicts) {
  ptx::Machine& machine = ptx_.machine();
  ptx_.change_grids(target.name, more_blocks);
  machine.forget_races();
  machine.counters() = {};
  machine.limit_launches(std::numeric_limits<std::int64_t>::max());
  std::vector<bool> differs(target.mutants.size());
  const RunResult whole = [&] {
    const ptx::MutantWatch watch(target.place->kernel(), target.mutants);
    RunResult result = each.through(ptx_);
    for (std::size_t i = 0; i < differs.size(); ++i) differs[i] = watch.differs(target.mutants[i]);
    return result;
  }();
  if (!whole.faults.empty() || !machine.races().empty()) {
    throw std::runtime_error(each.op_case->name() + ", " + std::string(each.kernel->name) +
                             ": the kernels fail as they are");
  }
  machine.limit_launches(kMostTimes * machine.counters().instructions + kSomeMore);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i].caught || !differs[i]) continue;
    verdicts[i] = run_mutant(target, target.mutants[i], each, whole);
  }
}

bool MutationGate::takes_grid(const Target& target, const CaseRun& each, int more_blocks) {
  ptx::Machine& machine = ptx_.machine();
  machine.limit_launches(std::numeric_limits<std::int64_t>::max());
  machine.forget_races();
  try {
    ptx_.change_grids(target.name, more_blocks);
    const RunResult result = each.through(ptx_);
    if (ptx_.changed_grids() == 0 || !result.faults.empty() || !machine.races().empty()) {
      return false;
    }
    ptx_.change_grids(target.name, 0);
    return same_values(result.outputs, each.through(ptx_).outputs);
  } catch (const ptx::Fault&) {
    return false;
  }
}

Verdict MutationGate::run_mutant(const Target& target, const ptx::Mutant& mutant,
                                 const CaseRun& each, const RunResult& whole) {
  const ptx::Mutation mutation(target.place->kernel(), mutant);
  ptx_.machine().forget_races();
  try {
    const RunResult result = each.through(ptx_);
    if (!ptx_.machine().races().empty()) return {.caught = true, .how = "a race"};
    if (!result.faults.empty()) return {.caught = true, .how = "bytes of others"};
    const bool same = same_values(result.outputs, whole.outputs);
    return {.caught = !same, .how = same ? "the same results" : "other results"};
  } catch (const ptx::Fault&) {
    return {.caught = true, .how = "stopped"};
  }
}

}  // namespace trainscope::test
