// Where the time of a range went: sums over the driving thread's spans in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "gui/views/timeline_rows.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {

struct RangeRow {
  std::string name = {};
  bool is_call = true;  // false: a copy, a wait
  std::int64_t ns = 0;  // within the range
  std::int64_t spans = 0;
};

struct RangeStatistics {
  std::vector<RangeRow> rows = {};  // the longest first
  std::int64_t range_ns = 0;
  std::int64_t spans_ns = 0;  // of all rows; the rest of the range has no span
};

RangeStatistics range_statistics(const TimelineData& data, const PlanView& plan,
                                 const TimeRange& range, profiler::GroupBy by);

}  // namespace trainscope::gui
