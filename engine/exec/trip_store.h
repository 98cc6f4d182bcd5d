// The second arena: what trips of loops beyond those that a plan has room for leave to gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "kernels/api/device.h"

namespace trainscope {

// What was needed beside the plan's arenas.
struct BeyondPlan {
  std::int64_t bytes = 0;  // of the device, taken so far
  std::int64_t trips = 0;  // the most that a loop had; 0: none had more than its room

  BeyondPlan& operator+=(const BeyondPlan& more);
};

// Slices of the stacks of one program, by the value that the stack is. Memory is taken as trips
// come, and kept for the steps behind.
class TripStore {
 public:
  explicit TripStore(DeviceHandle device) : device_(std::move(device)) {}
  ~TripStore();
  TripStore(const TripStore&) = delete;
  TripStore& operator=(const TripStore&) = delete;

  // A loop that makes the stack begins: nothing is left of its last run.
  void clear(ValueId stack);
  // Where the slice `number` behind the plan's room, of `bytes` bytes, is written: in their order,
  // from 0. Fails with kOutOfMemory.
  std::byte* add(ValueId stack, std::int64_t number, std::size_t bytes);
  // How many there are, and where one of them lies.
  std::int64_t count(ValueId stack) const;
  const std::byte* at(ValueId stack, std::int64_t number) const;

  // A loop has had so many trips.
  void note_trips(std::int64_t trips) { needed_.trips = std::max(needed_.trips, trips); }
  const BeyondPlan& needed() const { return needed_; }

 private:
  // Each block holds twice as many slices as the one before it, so that none moves.
  struct Stack {
    std::size_t slice_bytes = 0;
    std::int64_t count = 0;
    std::vector<std::byte*> blocks;
  };
  std::byte* place(const Stack& stack, std::int64_t number) const;

  DeviceHandle device_;
  std::map<ValueId, Stack> stacks_;
  BeyondPlan needed_;
};

}  // namespace trainscope
