// A profile as Chrome's trace event JSON with the fields of PyTorch's profiler (Kineto), which
// Perfetto and HTA read.
#pragma once

#include <cstdint>
#include <string>

#include "engine/bundle/plan_record.h"
#include "profiler/formats/text_sink.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

struct ChromeTrace {
  const EventView& events;
  PlanView plan;
  std::string name = {};  // of the run
  std::int64_t rank = 0;
  std::int64_t world = 1;
};

// Rows are of the host: what a CPU computes is never passed off as a device's. Times are in
// microseconds from baseTimeNanoseconds. Throws kBadInput for calls that the plan has not.
void write_chrome_trace(const ChromeTrace& trace, const WriteText& write);

}  // namespace trainscope::profiler
