// Which mutants a kernel has, and how it becomes one.
#include "tests/cuda/interpreter/mutants.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "tests/cuda/interpreter/bound_checks.h"
#include "tests/cuda/interpreter/code_paths.h"
#include "tests/cuda/interpreter/warp.h"

namespace trainscope::ptx {
namespace {

thread_local MutantWatch* watch = nullptr;

void run_nothing(Warp& /*warp*/, const Instruction& /*instruction*/, unsigned /*mask*/) {}

// Operand 0 = kPasses.
template <bool kPasses>
void run_passing(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  for_lanes(mask, [&](unsigned lane) { to.words[lane] = kPasses ? 1 : 0; });
}

std::vector<std::size_t> places_of(const Mutant& mutant) {
  std::vector<std::size_t> places = mutant.copies;
  places.push_back(mutant.place);
  return places;
}

}  // namespace

std::vector<Mutant> mutants_of(const Kernel& kernel) {
  const CodePaths paths(kernel);
  std::vector<Mutant> mutants;
  for (std::size_t place = 0; place < kernel.code.size(); ++place) {
    const Instruction& instruction = kernel.code[place];
    if (!paths.is_reached(place)) continue;
    if (instruction.orders_memory && conflicts(paths.before(place), paths.behind(place))) {
      mutants.push_back({.kind = MutantKind::kBarrier, .place = place});
    } else if (instruction.opcode.starts_with("cp.async.wait")) {
      mutants.push_back({.kind = MutantKind::kWait, .place = place});
    }
  }
  using Source = std::tuple<int, int, int, std::string_view, bool>;
  std::map<Source, std::size_t> of_source;
  for (const BoundCheck& check : bound_checks_of(kernel, paths)) {
    const Instruction& at = kernel.code[check.place];
    const Source source{at.source_file, at.source_line, at.inlined_line, at.opcode, check.passes};
    const auto found = of_source.find(source);
    if (found != of_source.end() && at.source_line != 0) {
      mutants[found->second].copies.push_back(check.place);
      continue;
    }
    of_source[source] = mutants.size();
    mutants.push_back({.kind = MutantKind::kBound, .place = check.place, .passes = check.passes});
  }
  std::ranges::sort(mutants, {}, &Mutant::place);
  return mutants;
}

Mutation::Mutation(Kernel& kernel, const Mutant& mutant) : kernel_(kernel) {
  for (const std::size_t place : places_of(mutant)) {
    Instruction& at = kernel.code[place];
    originals_.emplace_back(place, at);
    if (mutant.kind == MutantKind::kBound) {
      at.run = mutant.passes ? run_passing<true> : run_passing<false>;
      continue;
    }
    at.orders_memory = false;
    if (at.opcode.starts_with("bar.red.")) continue;
    at.run = run_nothing;
    at.flow = Flow::kNext;
  }
}

Mutation::~Mutation() {
  for (const auto& [place, original] : originals_) kernel_.code[place] = original;
}

MutantWatch::MutantWatch(Kernel& kernel, std::span<const Mutant> mutants)
    : kernel_(kernel), watched_(kernel.code.size()) {
  for (const Mutant& mutant : mutants) {
    for (const std::size_t place : places_of(mutant)) {
      Instruction& instruction = kernel.code[place];
      watched_[place] = {.run = instruction.run,
                         .is_check = mutant.kind == MutantKind::kBound,
                         .passes = mutant.passes};
      instruction.run = run_watched;
    }
  }
  watch = this;
}

MutantWatch::~MutantWatch() {
  watch = nullptr;
  for (std::size_t place = 0; place < watched_.size(); ++place) {
    if (watched_[place].run != nullptr) kernel_.code[place].run = watched_[place].run;
  }
}

bool MutantWatch::differs(const Mutant& mutant) const {
  return std::ranges::any_of(places_of(mutant),
                             [this](std::size_t place) { return watched_[place].differs; });
}

void MutantWatch::run_watched(Warp& warp, const Instruction& instruction, unsigned mask) {
  Watched& watched =
      watch->watched_[static_cast<std::size_t>(&instruction - watch->kernel_.code.data())];
  watched.run(warp, instruction, mask);
  if (!watched.is_check) {
    watched.differs = true;
    return;
  }
  const Lanes& result = warp.operand(instruction, 0);
  for_lanes(mask, [&](unsigned lane) {
    watched.differs = watched.differs || (result.words[lane] != 0) != watched.passes;
  });
}

}  // namespace trainscope::ptx
