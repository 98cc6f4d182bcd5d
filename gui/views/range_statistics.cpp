// Rows of calls of the driving thread and of a device, from the first span that ends in the range.
#include "gui/views/range_statistics.h"

namespace trainscope::gui {

profiler::RangeTimes range_statistics(const TimelineData& data, const PlanView& plan,
                                      const TimeRange& range, profiler::GroupBy by) {
  profiler::RangeSum sum(plan, data.device, range.begin_ns, range.end_ns);
  for (const TimelineRow& row : data.rows) {
    if (!sum.takes(row.thread) || row.level != SpanLevel::kCall) continue;
    for (std::size_t i = data.first_ending_after(row, range.begin_ns); i < row.events.size(); ++i) {
      const profiler::Event event = data.index.event(row.events[i]);
      if (event.begin_ns >= range.end_ns) break;
      sum.add(event);
    }
  }
  for (const StepSpan& step : data.steps) {
    sum.add_step(step.step, step.range.begin_ns, step.range.end_ns);
  }
  return sum.by(by);
}

}  // namespace trainscope::gui
