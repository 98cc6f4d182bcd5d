// What of a timeline is to be drawn: spans of two pixels and more as they are, smaller ones merged,
// so that the work depends on pixels and not on events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/views/plan_links.h"
#include "gui/views/timeline_rows.h"

namespace trainscope::gui {

// Nanoseconds across a view. Whole ones: profiles may be at times that a float cannot tell apart.
TimeRange zoomed(const TimelineData& data, const TimeRange& range, double factor, double share);
TimeRange moved(const TimelineData& data, const TimeRange& range, std::int64_t ns);

struct TimelineBox {
  std::uint32_t row = 0;    // in the data's rows
  std::uint32_t event = 0;  // of several the longest of some of them
  std::uint32_t count = 1;  // above 1: so many spans that are less than two pixels each
  float x = 0.0f;           // from the view's left, in pixels
  float width = 0.0f;
};

struct TimelineFrame {
  std::vector<TimelineBox> boxes = {};  // by row, then from left to right
};

// Reuses the frame's list.
void frame_timeline(const TimelineData& data, const TimeRange& range, float width,
                    TimelineFrame& frame);

// A span: a row of the data, and a position in its events.
struct SpanPlace {
  std::uint32_t row = 0;
  std::uint32_t at = 0;

  bool operator==(const SpanPlace&) const = default;
};

// The step that a moment is in, or else the nearest; null: there are none.
const StepSpan* step_at(const TimelineData& data, std::int64_t ns);

// From the span of a call to that of one that reads its results, through whatever views.
struct Flow {
  SpanPlace from = {};
  SpanPlace to = {};
};
// Those of a step to a call and from it.
std::vector<Flow> flows_of(const TimelineData& data, const PlanLinks& links, std::uint32_t call,
                           std::uint32_t step);
// Those of a step from what writes a value's bytes to what reads them: of a view, which no call
// makes.
std::vector<Flow> flows_through(const TimelineData& data, const PlanLinks& links,
                                std::uint32_t value, std::uint32_t step);

}  // namespace trainscope::gui
