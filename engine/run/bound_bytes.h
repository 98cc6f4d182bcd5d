// Bytes of the arena that are bound, counted as execution tells of buffers: what the plan says of
// each time, measured.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/plan/program.h"

namespace trainscope {

class BoundBytes {
 public:
  explicit BoundBytes(std::shared_ptr<const Program> program);

  // A micro-step begins: what is persistent is bound, and what an earlier micro-step left is told
  // of as freed, though nothing of this one is bound yet.
  void begin();
  void add(std::span<const BufferId> buffers);
  // False where they were of the micro-step before.
  bool remove(std::span<const BufferId> buffers);
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_of(std::span<const BufferId> buffers) const;

  std::shared_ptr<const Program> program_;
  std::int64_t persistent_bytes_ = 0;
  std::int64_t bytes_ = 0;
  bool has_bound_ = false;  // since the micro-step began
};

}  // namespace trainscope
