// One pass over the events.
#include "profiler/analysis/counter_ranges.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace trainscope::profiler {

std::vector<CounterRange> counter_ranges(const EventView& events) {
  std::map<EventKind, CounterRange> by_kind;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (!is_of_step(chunk.kind[i]) && !is_of_trace(chunk.kind[i])) continue;
      const double value = chunk.event(i).number();
      if (!std::isfinite(value)) continue;
      CounterRange& range = by_kind[chunk.kind[i]];
      const bool is_first = range.values == 0;
      range.kind = chunk.kind[i];
      range.least = is_first ? value : std::min(range.least, value);
      range.greatest = is_first ? value : std::max(range.greatest, value);
      ++range.values;
    }
  }
  std::vector<CounterRange> ranges;
  for (const auto& [kind, range] : by_kind) ranges.push_back(range);
  return ranges;
}

}  // namespace trainscope::profiler
