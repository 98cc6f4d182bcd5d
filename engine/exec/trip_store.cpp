// Blocks of slices that double.
#include "engine/exec/trip_store.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/core/error.h"
#include "engine/exec/device_work.h"

namespace trainscope {
namespace {

constexpr std::int64_t kFirstBlock = 16;  // slices; block k has kFirstBlock << k of them

std::size_t block_of(std::int64_t number) {
  const auto first = static_cast<std::uint64_t>(number / kFirstBlock + 1);
  return static_cast<std::size_t>(std::bit_width(first)) - 1;
}
std::int64_t slices_in(std::size_t block) { return kFirstBlock << block; }
std::int64_t slices_before(std::size_t block) { return slices_in(block) - kFirstBlock; }

}  // namespace

BeyondPlan& BeyondPlan::operator+=(const BeyondPlan& more) {
  bytes += more.bytes;
  trips = std::max(trips, more.trips);
  return *this;
}

TripStore::~TripStore() {
  for (const auto& [value, stack] : stacks_) {
    for (std::size_t k = 0; k < stack.blocks.size(); ++k) {
      if (stack.blocks[k] == nullptr) continue;
      device_->release(Space::kDevice, stack.blocks[k],
                       static_cast<std::size_t>(slices_in(k)) * stack.slice_bytes);
    }
  }
}

void TripStore::clear(ValueId stack) {
  const auto found = stacks_.find(stack);
  if (found != stacks_.end()) found->second.count = 0;
}

std::byte* TripStore::place(const Stack& stack, std::int64_t number) const {
  const std::size_t block = block_of(number);
  return stack.blocks[block] +
         static_cast<std::size_t>(number - slices_before(block)) * stack.slice_bytes;
}

std::byte* TripStore::add(ValueId value, std::int64_t number, std::size_t bytes) {
  Stack& stack = stacks_[value];
  stack.slice_bytes = bytes;
  CHECK_INVARIANT(number == stack.count);
  if (block_of(number) == stack.blocks.size()) {
    const std::size_t all = static_cast<std::size_t>(slices_in(stack.blocks.size())) * bytes;
    std::byte* memory = nullptr;
    if (all > 0) check(device_->allocate(Space::kDevice, all, &memory));
    stack.blocks.push_back(memory);
    needed_.bytes += static_cast<std::int64_t>(all);
  }
  ++stack.count;
  return place(stack, number);
}

std::int64_t TripStore::count(ValueId stack) const {
  const auto found = stacks_.find(stack);
  return found == stacks_.end() ? 0 : found->second.count;
}

const std::byte* TripStore::at(ValueId stack, std::int64_t number) const {
  const Stack& found = stacks_.at(stack);
  CHECK_INVARIANT(number < found.count);
  return place(found, number);
}

}  // namespace trainscope
