// What kernels did, summed over launches.
#pragma once

#include <cstdint>

namespace trainscope::ptx {

struct Counters {
  std::int64_t instructions = 0;  // of lanes
  std::int64_t barriers = 0;      // of blocks
  std::int64_t multiplies = 0;    // of warps on tensor cores: MMAs [16, 8, 16]
  // Of global memory: bytes that lanes asked for, and sectors of 32 bytes that instructions of a
  // warp touched, with the fewest that hold as many bytes.
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t sectors = 0;
  std::int64_t least_sectors = 0;
  // Of shared memory: passes over its 32 banks, and how few would do without conflicts.
  std::int64_t shared_bytes_read = 0;
  std::int64_t shared_bytes_written = 0;
  std::int64_t wavefronts = 0;
  std::int64_t least_wavefronts = 0;
};

}  // namespace trainscope::ptx
