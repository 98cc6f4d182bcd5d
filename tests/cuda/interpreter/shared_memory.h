// The shared memory of a block: what nobody wrote is NaN, and each byte knows who used it last, so
// that two threads that use it with no barrier between them are found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

// Times of a warp, each begun by a barrier among some of its lanes: up to which one what lane i did
// is ordered before what the lane does that has these clocks.
using Clocks = std::array<std::uint32_t, kLanes>;

// Who uses memory, and when. Barriers of the block begin a new epoch.
struct User {
  unsigned warp = 0;
  unsigned lane = 0;
  std::uint32_t epoch = 0;
  std::uint32_t time = 0;
  const Clocks& clocks;
};

enum class Use : std::uint8_t { kRead, kWrite, kAtomic };

class SharedMemory {
 public:
  // Of a new block: NaN, used by nobody.
  void begin_block(std::size_t bytes);
  std::size_t size() const { return bytes_.size(); }
  std::byte* at(std::size_t address) { return bytes_.data() + address; }

  // Notes the use; false where it races with one before.
  bool use(std::size_t address, std::size_t bytes, const User& user, Use use);

 private:
  struct Cell {
    std::uint32_t write_epoch = 0;
    std::uint32_t write_time = 0;
    std::uint32_t read_epoch = 0;
    std::uint32_t read_time = 0;
    std::uint32_t read_lanes = 0;  // up to that time, as far as they are not ordered before
    std::uint16_t write_warp = 0;
    std::uint16_t read_warp = 0;
    std::uint8_t write_lane = 0;
    bool by_atomic = false;            // the write
    bool read_by_other_warps = false;  // too, in this epoch
  };

  static bool write_ordered(const Cell& cell, const User& user);
  static unsigned unordered_readers(const Cell& cell, const User& user);
  static bool reads_ordered(const Cell& cell, const User& user);
  static void note_read(Cell& cell, const User& user);

  std::vector<std::byte> bytes_;
  std::vector<Cell> cells_;
};

}  // namespace trainscope::ptx
