// Mutants of every kernel of the PTX, and what the examples show of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda/interpreter/interpreted_kernels.h"
#include "tests/cuda/interpreter/mutants.h"
#include "tests/cuda/mutants/cases.h"

namespace trainscope::test {

struct Verdict {
  bool caught = false;
  std::string how;  // a word or two
};

class MutationGate {
 public:
  // Of the files of the folder that end in .ptx. Throws std::runtime_error for texts that are not
  // understood.
  explicit MutationGate(const std::filesystem::path& folder);

  // Keeps so many, as many of each kind as of others where there are enough, chosen by the seed.
  void choose(std::size_t count, std::uint64_t seed);
  // Keeps those of kernels whose names have this text in them.
  void keep_named(std::string_view text);
  // Keeps those of each `parts`-th kernel, from this one on.
  void keep_part(std::size_t part, std::size_t parts);
  // Runs all that are kept, and prints a line for each. Throws std::runtime_error where a kernel
  // fails as it is.
  void run();

 private:
  struct Target {
    std::string_view name;  // that g++ gives it too
    const ptx::InterpretedKernels::Place* place = nullptr;
    std::vector<CaseRun> runs;
    std::vector<ptx::Mutant> mutants;
  };

  void run(const Target& target);
  void run(const Target& target, const CaseRun& each, int more_blocks,
           std::vector<Verdict>& verdicts);
  // Whether the kernel gives the same in a grid of so many blocks more.
  bool takes_grid(const Target& target, const CaseRun& each, int more_blocks);
  Verdict run_mutant(const Target& target, const ptx::Mutant& mutant, const CaseRun& each,
                     const RunResult& whole);

  ptx::InterpretedKernels ptx_;
  Cases cases_;
  std::vector<Target> targets_;
};

}  // namespace trainscope::test
