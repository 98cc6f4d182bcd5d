// Races between the threads of a block, byte by byte.
#include "tests/cuda/interpreter/shared_memory.h"

#include <bit>

namespace trainscope::ptx {

void SharedMemory::begin_block(std::size_t bytes) {
  bytes_.assign(bytes, std::byte{0xFF});
  // Epochs go on counting from block to block, so what cells hold is of the past.
  if (cells_.size() < bytes) cells_.resize(bytes);
}

bool SharedMemory::write_ordered(const Cell& cell, const User& user) {
  if (cell.write_epoch != user.epoch) return true;
  if (cell.write_warp != user.warp) return false;
  return cell.write_lane == user.lane || cell.write_time < user.clocks[cell.write_lane];
}

// Lanes of the user's warp that read at the cell's time with no barrier between that and now.
unsigned SharedMemory::unordered_readers(const Cell& cell, const User& user) {
  unsigned unordered = 0;
  for (unsigned lanes = cell.read_lanes & ~(1U << user.lane); lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    if (cell.read_time >= user.clocks[lane]) unordered |= 1U << lane;
  }
  return unordered;
}

bool SharedMemory::reads_ordered(const Cell& cell, const User& user) {
  if (cell.read_epoch != user.epoch) return true;
  if (cell.read_by_other_warps || cell.read_warp != user.warp) return false;
  return unordered_readers(cell, user) == 0;
}

void SharedMemory::note_read(Cell& cell, const User& user) {
  if (cell.read_epoch != user.epoch) {
    cell.read_by_other_warps = false;
    cell.read_lanes = 0;
  } else if (cell.read_warp != user.warp) {
    cell.read_by_other_warps = true;
  } else if (cell.read_time != user.time) {
    cell.read_lanes = unordered_readers(cell, user);
  }
  cell.read_epoch = user.epoch;
  cell.read_time = user.time;
  cell.read_warp = static_cast<std::uint16_t>(user.warp);
  cell.read_lanes |= 1U << user.lane;
}

bool SharedMemory::use(std::size_t address, std::size_t bytes, const User& user, Use use) {
  bool ordered = true;
  for (std::size_t i = address; i < address + bytes; ++i) {
    Cell& cell = cells_[i];
    const bool atomics = use == Use::kAtomic && cell.by_atomic && cell.write_epoch == user.epoch;
    if (!atomics && !write_ordered(cell, user)) ordered = false;
    if (use == Use::kRead) {
      note_read(cell, user);
      continue;
    }
    if (!reads_ordered(cell, user)) ordered = false;
    cell.write_epoch = user.epoch;
    cell.write_time = user.time;
    cell.write_warp = static_cast<std::uint16_t>(user.warp);
    cell.write_lane = static_cast<std::uint8_t>(user.lane);
    cell.by_atomic = use == Use::kAtomic;
  }
  return ordered;
}

}  // namespace trainscope::ptx
