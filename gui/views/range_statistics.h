// Where the time of a range went, by the timeline's rows: only the range's own spans are looked at.
#pragma once

#include "gui/views/timeline_rows.h"
#include "profiler/analysis/range_times.h"

namespace trainscope::gui {

profiler::RangeTimes range_statistics(const TimelineData& data, const PlanView& plan,
                                      const TimeRange& range, profiler::GroupBy by);

}  // namespace trainscope::gui
