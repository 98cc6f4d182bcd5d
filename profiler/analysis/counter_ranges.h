// Between which values the counters of a profile's steps are.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/store/event_file.h"

namespace trainscope::profiler {

struct CounterRange {
  EventKind kind = EventKind::kLoss;
  std::int64_t values = 0;  // finite ones, of which it is the range
  double least = 0.0;
  double greatest = 0.0;
};

// Of counters that are read once after each step, by kind; without those that have no finite value.
std::vector<CounterRange> counter_ranges(const EventView& events);

}  // namespace trainscope::profiler
