// The lanes of a warp: their registers, and where each of them is in the kernel.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tests/cuda/interpreter/instruction.h"
#include "tests/cuda/interpreter/shared_memory.h"

namespace trainscope::ptx {

class Machine;

// 16 bytes on their way to shared memory. Those that a lane began with no end of a group between
// them arrive together.
struct AsyncCopy {
  const Instruction* instruction = nullptr;
  unsigned lane = 0;
  unsigned group = 0;
  std::uint64_t to = 0;
  const std::byte* from = nullptr;
  unsigned bytes = 0;  // the others are zeros
};

class Warp {
 public:
  // For a launch of the kernel.
  void prepare(Machine& machine, const Kernel& kernel, unsigned index);
  // Of another block: the lanes of the mask stand at the kernel's first instruction.
  void begin(unsigned lanes);
  // Until all lanes have ended or wait at a barrier of the block.
  void run();

  Machine& machine() const { return *machine_; }
  unsigned index() const { return index_; }
  unsigned live() const { return live_; }
  unsigned at_barrier() const { return at_barrier_; }
  const Instruction& instruction_of(unsigned lane) const {
    return kernel_->code[static_cast<std::size_t>(places_[lane])];
  }
  void leave_barrier();

  Lanes& operand(const Instruction& instruction, std::size_t i) {
    return registers_[static_cast<std::size_t>(instruction.operands[i])];
  }
  Lanes& at(int number) { return registers_[static_cast<std::size_t>(number)]; }
  // Copies of all lanes that have not arrived, and how many groups a lane has ended.
  std::vector<AsyncCopy>& copies() { return copies_; }
  unsigned& groups(unsigned lane) { return groups_[lane]; }
  User user(unsigned lane, std::uint32_t epoch) const {
    return {.warp = index_, .lane = lane, .epoch = epoch, .time = time_, .clocks = clocks_[lane]};
  }

 private:
  unsigned lanes_at(int place) const;
  void run_from(int place);
  void meet(int place, unsigned lanes);
  void order_memory(unsigned lanes);
  unsigned guarded(const Instruction& instruction, unsigned lanes);
  void move(unsigned lanes, int place);

  Machine* machine_ = nullptr;
  const Kernel* kernel_ = nullptr;
  unsigned index_ = 0;
  std::vector<Lanes> registers_;
  std::array<int, kLanes> places_ = {};
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  unsigned meeting_ = 0;    // lanes that wait for others of their warp
  std::uint32_t time_ = 0;  // barriers among lanes so far
  std::array<Clocks, kLanes> clocks_ = {};
  std::vector<AsyncCopy> copies_;
  std::array<unsigned, kLanes> groups_ = {};
};

// Calls f(lane) for the lanes of the mask.
template <typename F>
void for_lanes(unsigned mask, F f) {
  if (mask == ~0U) {
    for (unsigned lane = 0; lane < kLanes; ++lane) f(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

}  // namespace trainscope::ptx
