// Proof that a program writes only where its plan says: poison and comparison, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/exec/executor.h"

namespace trainscope {

// While it listens to an executor: before each call every byte of the arena that no live buffer
// owns is poisoned; after it every byte outside the call's outputs and workspace must be what it
// was. Costs two passes over the arena per call. Of bodies it sees the whole.
class MemoryCheck final : public ExecutionEvents {
 public:
  explicit MemoryCheck(std::shared_ptr<Executor> executor);
  MemoryCheck(const MemoryCheck&) = delete;

  void call_begin(const CallEvent& event) override;
  void call_end(const CallEvent& event) override;
  bool one_at_a_time() const override { return true; }

  // One line per call that wrote outside its own bytes.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::vector<Range> live_at(std::int64_t time) const;
  std::vector<Range> writable_by(const Call& call) const;

  void poison(std::int64_t begin, std::int64_t end);

  const Arena& arena() const { return executor_->memory().arena(Space::kDevice); }

  const std::shared_ptr<Executor> executor_;
  std::vector<std::byte> before_;  // copies of the arena
  std::vector<std::byte> after_;
  std::vector<std::string> violations_;
  Subscription listens_;
};

}  // namespace trainscope
