// Runs of a device laid over the plan: which of them had bytes at the same time that the plan gives
// to one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// Two calls that use the same bytes of an arena for two buffers, of which one writes them, ran at
// the same time: one of them outside of its buffer's life.
struct BufferOverlap {
  std::uint32_t first_call = 0;  // that began first
  std::uint32_t call = 0;
  std::uint32_t first_buffer = 0;
  std::uint32_t buffer = 0;
  std::int64_t runs = 0;      // how often
  std::int64_t begin_ns = 0;  // of the first time
  std::int64_t end_ns = 0;
};

// By the time at which each pair of calls and buffers met first. Of a profile whose calls a device
// of its own ran, else none. Events of calls that the plan has not are left out.
std::vector<BufferOverlap> buffer_overlaps(const EventView& events, const PlanView& plan);

// "call 7 /h.1/Gemm has buffer '/h.1/y' at 1204 to 1310 ns while call 5 ... "
std::string text_of(const BufferOverlap& overlap, const PlanView& plan);

}  // namespace trainscope::profiler
