// Which mutants a kernel has, and how it becomes one.
#include "tests/cuda/interpreter/mutants.h"

#include <algorithm>

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

}  // namespace

std::vector<Mutant> mutants_of(const Kernel& kernel) {
  const CodePaths paths(kernel);
  std::vector<Mutant> mutants;
  for (std::size_t place = 0; place < kernel.code.size(); ++place) {
    const Instruction& instruction = kernel.code[place];
    if (instruction.orders_memory && conflicts(paths.before(place), paths.behind(place))) {
      mutants.push_back({.kind = MutantKind::kBarrier, .place = place});
    } else if (instruction.opcode.starts_with("cp.async.wait")) {
      mutants.push_back({.kind = MutantKind::kWait, .place = place});
    }
  }
  for (const BoundCheck& check : bound_checks_of(kernel, paths)) {
    mutants.push_back({.kind = MutantKind::kBound, .place = check.place, .passes = check.passes});
  }
  std::ranges::sort(mutants, {}, &Mutant::place);
  return mutants;
}

Mutation::Mutation(Kernel& kernel, const Mutant& mutant)
    : at_(kernel.code[mutant.place]), original_(at_) {
  if (mutant.kind == MutantKind::kBound) {
    at_.run = mutant.passes ? run_passing<true> : run_passing<false>;
    return;
  }
  at_.orders_memory = false;
  if (at_.opcode.starts_with("bar.red.")) return;
  at_.run = run_nothing;
  at_.flow = Flow::kNext;
}

Mutation::~Mutation() { at_ = original_; }

MutantWatch::MutantWatch(Kernel& kernel, std::span<const Mutant> mutants)
    : kernel_(kernel), watched_(kernel.code.size()) {
  for (const Mutant& mutant : mutants) {
    Instruction& instruction = kernel.code[mutant.place];
    watched_[mutant.place] = {.run = instruction.run,
                              .is_check = mutant.kind == MutantKind::kBound,
                              .passes = mutant.passes};
    instruction.run = run_watched;
  }
  watch = this;
}

MutantWatch::~MutantWatch() {
  watch = nullptr;
  for (std::size_t place = 0; place < watched_.size(); ++place) {
    if (watched_[place].run != nullptr) kernel_.code[place].run = watched_[place].run;
  }
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
