// The steps of the driving thread as pieces, one after the other: in each, one span is the
// innermost. Where a device's own library recorded the calls, a moment at which the device is at
// one is a piece of that call, as in step_times.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

struct TimelinePiece {
  std::uint32_t step = 0;  // its number
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t call = kNoRow;        // kNoRow: no call has the time
  EventKind kind = EventKind::kStep;  // the innermost span's, or kCall of a device's call
  std::int64_t ns() const { return end_ns - begin_ns; }
};

// Pieces of each step that ended, without gaps: they add up to the steps. Throws kBadInput for
// calls that the plan has not.
std::vector<TimelinePiece> timeline(const EventView& events, const PlanView& plan);

// What a piece belongs to, from the outside in: phase, layer, ONNX node, op, kernel of its call; of
// other time one name, "(batch wait)".
std::vector<std::string> path_of(const PlanView& plan, const TimelinePiece& piece);

}  // namespace trainscope::profiler
