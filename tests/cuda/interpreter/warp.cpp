// Lanes that part, wait for each other and meet again.
#include "tests/cuda/interpreter/warp.h"

#include <algorithm>
#include <limits>

#include "tests/cuda/interpreter/machine.h"

namespace trainscope::ptx {

void Warp::prepare(Machine& machine, const Kernel& kernel, unsigned index) {
  machine_ = &machine;
  kernel_ = &kernel;
  index_ = index;
  registers_.assign(static_cast<std::size_t>(kernel.registers), Lanes{});
  for (const Kernel::Constant& constant : kernel.constants) {
    at(constant.number).words.fill(constant.value);
  }
}

void Warp::begin(unsigned lanes) {
  live_ = lanes;
  at_barrier_ = 0;
  meeting_ = 0;
  time_ = 0;
  places_ = {};
  clocks_ = {};
  copies_.clear();
  groups_ = {};
}

unsigned Warp::lanes_at(int place) const {
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (places_[lane] == place) lanes |= 1U << lane;
  }
  return lanes & live_;
}

// The lanes that are furthest behind go first: so those that parted meet again as soon as they can.
void Warp::run() {
  while (const unsigned ready = live_ & ~at_barrier_ & ~meeting_) {
    int first = std::numeric_limits<int>::max();
    for_lanes(ready, [&](unsigned lane) { first = std::min(first, places_[lane]); });
    if (machine_->is_past_limit()) {
      const auto lane = static_cast<unsigned>(std::countr_zero(ready));
      machine_->fail(*this, lane, instruction_of(lane), "the launch takes too many instructions");
    }
    run_from(first);
  }
  if (meeting_ == 0) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(meeting_));
  machine_->fail(*this, lane, instruction_of(lane), "lanes wait for others that do not come");
}

unsigned Warp::guarded(const Instruction& instruction, unsigned lanes) {
  if (instruction.guard == Instruction::kNone) return lanes;
  const Lanes& predicate = at(instruction.guard);
  unsigned holds = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    holds |= (predicate.words[lane] != 0 ? 1U : 0U) << lane;
  }
  return lanes & (instruction.guard_negated ? ~holds : holds);
}

void Warp::move(unsigned lanes, int place) {
  for_lanes(lanes, [&](unsigned lane) { places_[lane] = place; });
}

// The lanes at this place, until they part, wait or come to where others are.
void Warp::run_from(int place) {
  const unsigned lanes = lanes_at(place);
  int others = std::numeric_limits<int>::max();
  for_lanes(live_ & ~lanes, [&](unsigned lane) { others = std::min(others, places_[lane]); });
  while (true) {
    const Instruction& instruction = kernel_->code[static_cast<std::size_t>(place)];
    if (instruction.flow == Flow::kLanesMeet) return move(lanes, place), meet(place, lanes);
    const unsigned mask = guarded(instruction, lanes);
    machine_->counters().instructions += std::popcount(mask);
    switch (instruction.flow) {
      case Flow::kBranch:
        if (mask == lanes && instruction.target > place && instruction.target < others) {
          place = instruction.target;
          continue;
        }
        move(lanes, place + 1);
        return move(mask, instruction.target);
      case Flow::kExit:
        move(lanes, place + 1);
        live_ &= ~mask;
        return;
      case Flow::kBarrier:
        move(lanes, place + 1);
        move(mask, place);
        at_barrier_ |= mask;
        return;
      case Flow::kLanesMeet:
      case Flow::kNext:
        break;
    }
    if (mask != 0) instruction.run(*this, instruction, mask);
    if (++place == others) return move(lanes, place);
  }
}

// Lanes whose whole mask is at this place go on; the others wait for the rest.
void Warp::meet(int place, unsigned lanes) {
  const Instruction& instruction = kernel_->code[static_cast<std::size_t>(place)];
  const unsigned here = guarded(instruction, lanes);
  move(lanes & ~here, place + 1);
  meeting_ &= ~lanes;
  const Lanes& masks = operand(instruction, instruction.operands.size() - 1);
  unsigned left = here;
  while (left != 0) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const auto mask = static_cast<unsigned>(masks.words[lane]);
    if ((mask >> lane & 1U) == 0) {
      machine_->fail(*this, lane, instruction, "a lane is left out by its own mask");
    }
    left &= ~mask;
    if ((mask & live_ & ~here) != 0) {  // lanes that may still come
      meeting_ |= mask & here;
      continue;
    }
    if ((mask & ~here) != 0) {
      machine_->fail(*this, lane, instruction, "a mask names lanes that have ended");
    }
    machine_->counters().instructions += std::popcount(mask);
    if (instruction.orders_memory) order_memory(mask);
    instruction.run(*this, instruction, mask);
    move(mask, place + 1);
  }
}

// What one of the lanes did, or what is ordered before that, is ordered before what any does now.
void Warp::order_memory(unsigned lanes) {
  ++time_;
  Clocks joined = {};
  for_lanes(lanes, [&](unsigned lane) {
    for (unsigned i = 0; i < kLanes; ++i) joined[i] = std::max(joined[i], clocks_[lane][i]);
  });
  for_lanes(lanes, [&](unsigned lane) { joined[lane] = time_; });
  for_lanes(lanes, [&](unsigned lane) { clocks_[lane] = joined; });
}

void Warp::leave_barrier() {
  for_lanes(at_barrier_, [&](unsigned lane) { ++places_[lane]; });
  at_barrier_ = 0;
}

}  // namespace trainscope::ptx
