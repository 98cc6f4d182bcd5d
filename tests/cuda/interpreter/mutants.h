// Mutants: a kernel with one thing left out of its code, for tests to notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

enum class MutantKind : std::uint8_t {
  kBarrier,  // of a block or a warp: deleted; one that counts votes still does, and orders nothing
  kWait,     // for asynchronous copies: deleted
  kBound,    // a bound check: every lane passes
};

struct Mutant {
  MutantKind kind = MutantKind::kBarrier;
  std::size_t place = 0;  // of the instruction in the kernel's code
  bool passes = false;    // of a bound check: the result that lets a lane pass
  // Of a bound check: its other places, where the compiler unrolled the code around it.
  std::vector<std::size_t> copies = {};
};

// In the order of the code. A bound check is one of the source: comparisons of one line, inlined in
// one line, with one opcode and one result that passes, are copies of it. A barrier is left out
// where nothing is to be ordered: what may be done before it and what may be done behind it, up to
// the nearest other barriers, do not conflict. What no thread comes to is no mutant.
std::vector<Mutant> mutants_of(const Kernel& kernel);

// The kernel is the mutant for as long as this lives.
class Mutation {
 public:
  Mutation(Kernel& kernel, const Mutant& mutant);
  ~Mutation();
  Mutation(const Mutation&) = delete;

 private:
  Kernel& kernel_;
  std::vector<std::pair<std::size_t, Instruction>> originals_;  // by place
};

// Notes, for as long as it lives, which of the mutants would do something else than the kernel
// does: those whose barrier or wait is passed, or whose check turns a lane away. One at a time in a
// thread.
class MutantWatch {
 public:
  MutantWatch(Kernel& kernel, std::span<const Mutant> mutants);
  ~MutantWatch();
  MutantWatch(const MutantWatch&) = delete;

  bool differs(const Mutant& mutant) const;

 private:
  struct Watched {
    Run run = nullptr;  // what the instruction does; null: nobody watches it
    bool is_check = false;
    bool passes = false;
    bool differs = false;
  };
  static void run_watched(Warp& warp, const Instruction& instruction, unsigned mask);

  Kernel& kernel_;
  std::vector<Watched> watched_;  // by place
};

}  // namespace trainscope::ptx
