// Runs of a device laid over the plan: which of them had bytes at the same time that the plan gives
// to one after the other, or had them in another order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// Two calls that use the same bytes of an arena for two buffers, of which one writes them: both ran
// at the same time, or the one to which the plan gives the bytes later had ended before the other
// began. So one of them ran outside of its buffer's life.
struct BufferOverlap {
  std::uint32_t first_call = 0;  // that began first; of two in the wrong order the plan's first
  std::uint32_t call = 0;
  std::uint32_t first_buffer = 0;
  std::uint32_t buffer = 0;
  bool is_early = false;      // `call` ended before `first_call` began
  std::int64_t runs = 0;      // how often
  std::int64_t begin_ns = 0;  // of the first time: both ran; or from one begin to the other end
  std::int64_t end_ns = 0;
};

// By the time at which each pair of calls and buffers met first. Of a profile whose calls a device
// of its own ran, else none. Events of calls that the plan has not are left out.
//
// Every two runs that overlap in time are looked at. The order is that of the plan within each
// micro-step, then that of the update, step by step: of the last buffer that had some bytes and the
// next one, each run of a call of the one is held against the run before it, by this order, of each
// call of the other. The host may be steps ahead, so runs of a call are told apart by their number
// in a window of steps that were profiled one behind the other. A call that did not run there as
// often as it should, once a micro-step or once an update, since runs were lost, is left out.
std::vector<BufferOverlap> buffer_overlaps(const EventView& events, const PlanView& plan);

// "call 7 /h.1/Gemm used '/h.1/y' while call 5 /h.0/Gemm used '/h.0/x', which has the same bytes:
// in 2 runs, first from 1204 to 1310 ns"; of two in the wrong order "before" and not "while".
std::string text_of(const BufferOverlap& overlap, const PlanView& plan);

}  // namespace trainscope::profiler
