// A plan at one time: what is alive, where it lies, what is free between; and what lies unused for
// how long.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/bundle/plan_record.h"

namespace trainscope {

// Buffers of the device's arena that are alive at a time, by offset.
std::vector<std::uint32_t> alive_at(const PlanView& plan, std::uint32_t time);

// Whether a node writes it first, as a result or as its workspace: parameters, states, constants
// and inputs are there before.
bool is_made_by_node(const PlanView& plan, const PlanBuffer& buffer);

// Bytes of each BufferClass among these buffers.
inline constexpr std::size_t kBufferClasses = 9;
std::array<std::int64_t, kBufferClasses> bytes_by_class(const PlanView& plan,
                                                        std::span<const std::uint32_t> buffers);

// When the most bytes of the device's arena are alive, and what they are. Of a plan without calls
// nothing is alive.
struct MemoryPeak {
  std::uint32_t time = 0;  // the first such one
  std::int64_t live_bytes = 0;
  std::uint32_t call = kNoRow;                             // the first at that time
  std::vector<std::uint32_t> alive = {};                   // buffers, the largest first
  std::array<std::int64_t, kBufferClasses> bytes_of = {};  // by BufferClass

  double share(std::int64_t bytes) const {
    return live_bytes == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(live_bytes);
  }
};
MemoryPeak memory_peak(const PlanView& plan);

// Bytes of the arena that nobody has at a time, between buffers and up to the arena's end, and the
// times [begin, end) around it at which all of them are free.
struct PlanGap {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  std::int64_t calls() const { return static_cast<std::int64_t>(end) - begin; }
};
// By offset.
std::vector<PlanGap> gaps_at(const PlanView& plan, std::uint32_t time);

// By buffer: the times at which calls read or write it, or have it as workspace; ascending, each
// once.
std::vector<std::vector<std::uint32_t>> buffer_uses(const PlanView& plan);

// A buffer between two uses, when nobody needs its bytes where they are: times (from, to).
struct IdleWait {
  std::uint32_t buffer = 0;
  std::uint32_t from = 0;       // the use before
  std::uint32_t to = 0;         // the next use
  std::int64_t byte_calls = 0;  // its bytes, times the positions between the two

  std::int64_t calls() const { return static_cast<std::int64_t>(to) - from - 1; }
};
// The longest wait of each buffer of the device's arena that is not persistent and waits at all,
// the one with the most bytes times calls first.
std::vector<IdleWait> idle_waits(const PlanView& plan);

}  // namespace trainscope
