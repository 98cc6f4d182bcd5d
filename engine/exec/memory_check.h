// Proof that a program writes only where its plan says: poison and comparison, for tests.
#pragma once

#include <string>
#include <vector>

#include "engine/exec/executor.h"

namespace trainscope {

// While it observes an executor: before each instruction every byte of the arena that no live
// buffer owns is poisoned; after it every byte outside the instruction's outputs and workspace must
// be what it was. Costs two passes over the arena per instruction.
class MemoryCheck final : public Executor::Observer {
 public:
  explicit MemoryCheck(Executor& executor);
  ~MemoryCheck() override;
  MemoryCheck(const MemoryCheck&) = delete;

  void before(std::size_t instruction) override;
  void after(std::size_t instruction) override;
  bool alone() const override { return true; }

  // One line per instruction that wrote outside its own bytes.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::vector<Range> live_at(std::size_t instruction) const;
  std::vector<Range> writable_by(std::size_t instruction) const;

  void poison(std::int64_t begin, std::int64_t end);

  Executor& executor_;
  const Arena& arena_;
  std::vector<std::byte> before_;  // copies of the arena
  std::vector<std::byte> after_;
  std::vector<std::string> violations_;
};

}  // namespace trainscope
