// Which instructions of a kernel may follow which: what is done behind one way of a branch alone,
// and on both sides of a barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

// What instructions do with memory that threads share.
struct MemoryUse {
  bool reads_shared = false;
  bool writes_shared = false;
  bool reads_global = false;
  bool writes_global = false;

  bool uses_global() const { return reads_global || writes_global; }
  void add(const MemoryUse& other);
};
MemoryUse memory_use_of(const Instruction& instruction);
// Whether a thread that does the one and another that does the other may need an order between
// them.
bool conflicts(const MemoryUse& one, const MemoryUse& other);

// How lanes go on behind a branch or an exit with a guard.
enum class Way : std::uint8_t { kNext, kTaken };

class CodePaths {
 public:
  // For as long as the kernel and its code are there.
  explicit CodePaths(const Kernel& kernel);

  // Predicates that have one value for every thread (choices_of_threads()): branches by them go one
  // way.
  const std::map<int, bool>& choices() const { return choices_; }
  // Whether any thread may come to this place.
  bool is_reached(std::size_t place) const { return reached_[place]; }
  // Of the instructions that lanes come to only if they went this way at the branch.
  MemoryUse only_behind(std::size_t branch, Way way) const;
  // Of those that may run before a barrier, and behind it, with no other one in between that orders
  // the same threads.
  MemoryUse before(std::size_t barrier) const;
  MemoryUse behind(std::size_t barrier) const;

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  struct Followers {
    std::size_t next = kNowhere;
    std::size_t taken = kNowhere;
  };

  // Instructions that lanes come to, by any way but this one.
  std::vector<bool> reached_without(std::size_t branch, Way way) const;
  // Of what lies on one side of a barrier.
  MemoryUse near(std::size_t barrier, bool forward) const;

  const std::vector<Instruction>& code_;
  std::map<int, bool> choices_;
  std::vector<MemoryUse> uses_;  // by place, as all of these
  std::vector<Followers> followers_;
  std::vector<std::vector<std::size_t>> leaders_;  // what an instruction may follow
  std::vector<bool> reached_;
};

}  // namespace trainscope::ptx
