// The moment of a plan at which the most bytes are alive, and what they are.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/bundle/plan_record.h"

namespace trainscope::profiler {

inline constexpr std::size_t kBufferClasses = 9;

struct MemoryPeak {
  std::uint32_t time = 0;                                  // the first of them
  std::int64_t live_bytes = 0;                             // of the device's arena
  std::uint32_t call = kNoRow;                             // that computes there
  std::vector<std::uint32_t> alive = {};                   // buffers, the largest first
  std::array<std::int64_t, kBufferClasses> bytes_of = {};  // by BufferClass

  double share(std::int64_t bytes) const {
    return live_bytes == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(live_bytes);
  }
};

// Of a plan without calls nothing is alive.
MemoryPeak memory_peak(const PlanView& plan);

}  // namespace trainscope::profiler
